// SPDX-License-Identifier: Apache-2.0
// The largest number of each window, one channel after the other.
#include "kernels/math/images/max_pool.hpp"

#include "messages/assert.hpp"

#include <algorithm>

namespace troupe::reference {

namespace {

/// Where the largest number of a window's channel lies in `input`.
template <class T>
size_t largest_of(const image_windows& windows, std::span<const T> input, size_t window,
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
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output.size() == windows.windows() * channels, output.size(), windows.windows());
  for (size_t i = 0; i < output.size(); ++i)
    output[i] = input[largest_of(windows, input, i / channels, i % channels)];
}

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output_gradient.size() == windows.windows() * channels, output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  std::ranges::fill(input_gradient, T{0});
  for (size_t i = 0; i < output_gradient.size(); ++i)
    input_gradient[largest_of(windows, input, i / channels, i % channels)] += output_gradient[i];
}

template void max_pool(const context&, const image_windows&, std::span<const float>,
                       std::span<float>);
template void max_pool(const context&, const image_windows&, std::span<const double>,
                       std::span<double>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const float>,
                                std::span<const float>, std::span<float>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const double>,
                                std::span<const double>, std::span<double>);

} // namespace troupe::reference
