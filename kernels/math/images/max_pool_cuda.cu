// SPDX-License-Identifier: Apache-2.0
// The largest number of each window on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/images/max_pool.hpp"
#include "messages/assert.hpp"

namespace troupe::cuda {

namespace {

/// Where the largest number of a window's channel lies.
template <class T>
__device__ size_t largest_of(const image_windows& windows, const T* input, size_t window,
                             size_t channel) {
  auto largest = image_windows::no_pixel;
  windows.for_pixels_of(window, [&](size_t pixel, size_t) {
    const auto here = pixel * windows.channels + channel;
    if (largest == image_windows::no_pixel || is_larger(input[here], input[largest]))
      largest = here;
  });
  return largest;
}

} // namespace

template <class T>
void max_pool(const context& on, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output.size() == windows.windows() * channels, output.size(), windows.windows());
  const T* from = input.data();
  T* to = output.data();
  auto pick = [=] __device__(size_t i) {
    to[i] = from[largest_of(windows, from, i / channels, i % channels)];
  };
  for_each(on, output.size(), pick);
}

template <class T>
void max_pool_gradient(const context& on, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output_gradient.size() == windows.windows() * channels, output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  const T *from = input.data(), *arriving = output_gradient.data();
  T* to = input_gradient.data();
  auto collect = [=] __device__(size_t i) {
    T sum = 0;
    windows.for_windows_over(i / channels, [&](size_t window, size_t) {
      if (largest_of(windows, from, window, i % channels) == i)
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
