// SPDX-License-Identifier: Apache-2.0
// The largest number of each window on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/images/max_pool.hpp"
#include "messages/errors/assert.hpp"

namespace troupe::cuda {

template <class T>
void max_pool(const context& on, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  troupe::detail::check_sizes(windows, input.size(), output.size());
  const T* from = input.data();
  T* to = output.data();
  auto pick = [=] __device__(size_t i) {
    to[i] = from[troupe::detail::place_of_largest(windows, from, i / channels, i % channels)];
  };
  for_each(on, output.size(), pick);
}

template <class T>
void max_pool_gradient(const context& on, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  troupe::detail::check_sizes(windows, input.size(), output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  const T *from = input.data(), *arriving = output_gradient.data();
  T* to = input_gradient.data();
  auto collect = [=] __device__(size_t i) {
    T sum = 0;
    windows.for_windows_over(i / channels, [&](size_t window, size_t) {
      if (troupe::detail::place_of_largest(windows, from, window, i % channels) == i)
        sum += arriving[window * channels + i % channels];
    });
    to[i] = sum;
  };
  for_each(on, input_gradient.size(), collect);
}

template void max_pool(const context&, const image_windows&, std::span<const float>,
                       std::span<float>);
template void max_pool(const context&, const image_windows&, std::span<const double>,
                       std::span<double>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const float>,
                                std::span<const float>, std::span<float>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const double>,
                                std::span<const double>, std::span<double>);

} // namespace troupe::cuda
