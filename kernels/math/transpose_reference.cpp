// SPDX-License-Identifier: Apache-2.0
// The transposition, element by element.
#include "kernels/math/transpose.hpp"

namespace troupe::reference {

template <class T>
void transpose(const context&, size_t rows, std::span<const T> input, std::span<T> output) {
  auto columns = detail::columns_of(rows, input.size(), output.size());
  for (size_t i = 0; i < input.size(); ++i)
    output[i % columns * rows + i / columns] = input[i];
}

template void transpose(const context&, size_t, std::span<const float>, std::span<float>);
template void transpose(const context&, size_t, std::span<const double>, std::span<double>);

} // namespace troupe::reference
