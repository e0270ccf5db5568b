// SPDX-License-Identifier: Apache-2.0
// The transposition by blocks.
#include "kernels/math/transpose.hpp"

#include <algorithm>

namespace troupe::cpu {

template <class T>
void transpose(const context&, size_t rows, std::span<const T> input, std::span<T> output) {
  auto columns = troupe::detail::columns_of(rows, input.size(), output.size());
  constexpr size_t block = 32; // 4 KiB of f32 on each side
  for (size_t top = 0; top < rows; top += block)
    for (size_t left = 0; left < columns; left += block)
      for (size_t row = top; row < std::min(rows, top + block); ++row)
        for (size_t column = left; column < std::min(columns, left + block); ++column)
          output[column * rows + row] = input[row * columns + column];
}

template void transpose(const context&, size_t, std::span<const float>, std::span<float>);
template void transpose(const context&, size_t, std::span<const double>, std::span<double>);

} // namespace troupe::cpu
