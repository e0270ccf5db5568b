// SPDX-License-Identifier: Apache-2.0
// The largest number of each window, many channels at a time.
#include "kernels/math/images/max_pool.hpp"

#include "kernels/tensor/parallel.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace troupe::cpu {

namespace {

/// The pixels of a window that lie within the image.
struct rectangle {
  size_t first; ///< At the upper left, among all pixels.
  size_t rows;
  size_t columns;
};

/// Calls `body(window, rectangle)` for all windows, in their order: loops in place of the divisions
/// that a window's number would take.
template <class Body>
void for_rectangles(const image_windows& windows, Body body) {
  const auto height = windows.output_height(), width = windows.output_width();
  size_t window = 0;
  for (size_t image = 0; image < windows.batch; ++image)
    for (size_t y = 0; y < height; ++y) {
      const auto rows = windows.rows_of(y);
      const auto row = image * windows.height + rows.begin;
      for (size_t x = 0; x < width; ++x) {
        const auto columns = windows.columns_of(x);
        body(window++, rectangle{row * windows.width + columns.begin, rows.end - rows.begin,
                                 columns.end - columns.begin});
      }
    }
}

/// Calls `body(place)` for each pixel; its first channel lies at `place`.
template <class Body>
void for_pixels(const rectangle& pixels, const image_windows& windows, Body body) {
  for (size_t row = 0; row < pixels.rows; ++row)
    for (size_t column = 0; column < pixels.columns; ++column)
      body((pixels.first + row * windows.width + column) * windows.channels);
}

/// Channels that lie side by side. The compiler's vectors keep what is known of them in registers,
/// as arrays would not, and compare and choose channel by channel.
template <class T>
struct vector_of {
  using type [[gnu::vector_size(32)]] = T;
};

/// Calls `body(zeros, first)` for all channels: as many of them, from the `first` one, as there are
/// zeros in a vector, or one.
template <class T, class Body>
void for_channels(size_t channels, Body body) {
  using vector = typename vector_of<T>::type;
  constexpr size_t width = sizeof(vector) / sizeof(T);
  size_t first = 0;
  for (; first + width <= channels; first += width)
    body(vector{}, first);
  for (; first < channels; ++first)
    body(T{}, first);
}

template <class Values, class T>
Values load(const T* from) {
  Values values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

template <class Values, class T>
void store(T* to, const Values& values) {
  std::memcpy(to, &values, sizeof values);
}

template <class Values, class T>
Values largest_of(const rectangle& pixels, const image_windows& windows, const T* input) {
  auto largest = Values{} - std::numeric_limits<T>::infinity();
  for_pixels(pixels, windows, [&](size_t place) {
    const auto candidate = load<Values>(input + place);
    largest = is_larger(candidate, largest) ? candidate : largest;
  });
  return largest;
}

/// Adds a window's gradient to that of the first pixel that has the largest number.
template <class Values, class T>
void add_gradient(const rectangle& pixels, const image_windows& windows, const T* input,
                  Values gradient, T* sums) {
  const auto largest = largest_of<Values>(pixels, windows, input);
  for_pixels(pixels, windows, [&](size_t place) {
    const auto value = load<Values>(input + place);
    const auto is_largest = (value == largest) | ((value != value) & (largest != largest));
    store(sums + place, load<Values>(sums + place) + (is_largest ? gradient : Values{}));
    gradient = is_largest ? Values{} : gradient; // nothing is left for those that are equal
  });
}

} // namespace

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  troupe::detail::check_sizes(windows, input.size(), output.size());
  with_widest_vectors([=, from = input.data(), to = output.data()] {
    for_rectangles(windows, [=](size_t window, const rectangle& pixels) {
      for_channels<T>(channels, [=](auto zeros, size_t first) {
        const auto largest = largest_of<decltype(zeros)>(pixels, windows, from + first);
        store(to + window * channels + first, largest);
      });
    });
  });
}

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  troupe::detail::check_sizes(windows, input.size(), output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  std::ranges::fill(input_gradient, T{0});
  with_widest_vectors(
    [=, from = input.data(), arriving = output_gradient.data(), to = input_gradient.data()] {
      for_rectangles(windows, [=](size_t window, const rectangle& pixels) {
        for_channels<T>(channels, [=](auto zeros, size_t first) {
          const auto gradient = load<decltype(zeros)>(arriving + window * channels + first);
          add_gradient(pixels, windows, from + first, gradient, to + first);
        });
      });
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
