// SPDX-License-Identifier: Apache-2.0
// The transposition on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/transpose.hpp"

namespace troupe::cuda {

template <class T>
void transpose(const context& on, size_t rows, std::span<const T> input, std::span<T> output) {
  auto columns = troupe::detail::columns_of(rows, input.size(), output.size());
  for_each(on, input.size(), [=, from = input.data(), to = output.data()] __device__(size_t i) {
    to[i % columns * rows + i / columns] = from[i];
  });
}

template void transpose(const context&, size_t, std::span<const float>, std::span<float>);
template void transpose(const context&, size_t, std::span<const double>, std::span<double>);

} // namespace troupe::cuda
