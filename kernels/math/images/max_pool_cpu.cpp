// SPDX-License-Identifier: Apache-2.0
// The largest number of each window, many channels at a time.
#include "kernels/math/images/max_pool.hpp"

#include "messages/assert.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace troupe::cpu {

namespace {

/// Channels that are worked on at a time: what is known of them stays in the cache.
constexpr size_t channels_at_once = 64;

/// The largest numbers so far of some channels of a window, and where they lie.
template <class T>
struct largest_numbers {
  std::array<T, channels_at_once> values;
  std::array<uint32_t, channels_at_once> places; ///< Fits: see `image_elements_max`.

  largest_numbers(const image_windows& windows, std::span<const T> input, size_t window,
                  size_t first_channel, size_t count) {
    bool is_first = true;
    windows.for_pixels_of(window, [&](size_t pixel, size_t) {
      const auto begin = pixel * windows.channels + first_channel;
      const T* from = input.data() + begin;
      for (size_t i = 0; i < count; ++i) {
        const auto takes_over = is_first || is_larger(from[i], values[i]);
        values[i] = takes_over ? from[i] : values[i];
        places[i] = takes_over ? static_cast<uint32_t>(begin + i) : places[i];
      }
      is_first = false;
    });
  }
};

/// Calls `body(largest, output, count)` for all channels of all windows; `output` is where the
/// first of `count` channels lies in the output.
template <class T, class Body>
void for_channels(const image_windows& windows, std::span<const T> input, Body body) {
  for (size_t window = 0; window < windows.windows(); ++window)
    for (size_t first = 0; first < windows.channels; first += channels_at_once) {
      const auto count = std::min(channels_at_once, windows.channels - first);
      body(largest_numbers<T>{windows, input, window, first, count},
           window * windows.channels + first, count);
    }
}

} // namespace

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output.size() == windows.windows() * channels, output.size(), windows.windows());
  for_channels(windows, input, [&](const largest_numbers<T>& largest, size_t to, size_t count) {
    std::copy_n(largest.values.begin(), count, output.begin() + static_cast<ptrdiff_t>(to));
  });
}

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  TROUPE_ASSERT(input.size() == windows.pixels() * channels, input.size(), windows.pixels());
  TROUPE_ASSERT(output_gradient.size() == windows.windows() * channels, output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  std::ranges::fill(input_gradient, T{0});
  for_channels(windows, input, [&](const largest_numbers<T>& largest, size_t from, size_t count) {
    for (size_t i = 0; i < count; ++i)
      input_gradient[largest.places[i]] += output_gradient[from + i];
  });
}

template void max_pool(const context&, const image_windows&, std::span<const float>,
                       std::span<float>);
template void max_pool(const context&, const image_windows&, std::span<const double>,
                       std::span<double>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const float>,
                                std::span<const float>, std::span<float>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const double>,
                                std::span<const double>, std::span<double>);

} // namespace troupe::cpu
