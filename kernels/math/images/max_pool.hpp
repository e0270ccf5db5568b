// SPDX-License-Identifier: Apache-2.0
// The largest number of each window of an image, for each channel.
#pragma once

#include "kernels/math/images/image_windows.hpp"
#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <span>

namespace troupe {

/// Whether a number takes the place of the largest one before it: of equal ones the first counts,
/// and the first NaN more than every number, so that a computation that has failed stays visible.
/// @tparam T f32, f64 or a vector of them, which is compared element by element.
template <class T>
[[nodiscard]] constexpr auto is_larger(const T& candidate, const T& largest) {
  // Neither is the candidate at most the largest, which a NaN never is, nor the largest a NaN.
  return (candidate <= largest) == (largest != largest);
}

namespace detail {

/// The place in `input` of the largest number of a window's channel.
template <class T>
[[nodiscard]] constexpr size_t place_of_largest(const image_windows& windows, const T* input,
                                                size_t window, size_t channel) {
  auto largest = image_windows::no_pixel;
  windows.for_pixels_of(window, [&](size_t pixel, size_t) {
    const auto place = pixel * windows.channels + channel;
    if (largest == image_windows::no_pixel || is_larger(input[place], input[largest]))
      largest = place;
  });
  return largest;
}

/// Asserts that arrays of these sizes are the input and the output of a pooling.
inline void check_sizes(const image_windows& windows, size_t input, size_t output) {
  TROUPE_ASSERT(input == windows.pixels() * windows.channels, input, windows.pixels());
  TROUPE_ASSERT(output == windows.windows() * windows.channels, output, windows.windows());
}

} // namespace detail

// output[window, c] = the largest input[pixel, c] of the window's pixels within the image, as
// `is_larger` has it; the whole gradient goes to that pixel. All twins have the same bits.
//
// Shape: input   [batch, height, width, channels]                row-major f32 or f64
//        output  [batch, output_height, output_width, channels]
//        A gradient has the shape of the array that it is the gradient by.
//        Arrays that are written alias nothing.
// @pre No array has more than `image_elements_max` elements.

namespace reference {

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output);

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient);

} // namespace reference

namespace cpu {

// As the reference, channels side by side; the calling thread alone. oneDNN's pooling, which is no
// faster, passes NaN over (a window of NaN becomes the lowest f32, and so does one of -infinity),
// and wants memory kept from the forward pass to the gradient.

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output);

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient);

} // namespace cpu

namespace cuda {

// A thread for each element of the result; the gradient looks at each window that takes in the
// element again, so that its sums have the order of windows.

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output);

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient);

} // namespace cuda

} // namespace troupe
