// SPDX-License-Identifier: Apache-2.0
// Convolution of images: each window's pixels, weighed and added up, for each output channel.
#pragma once

#include "kernels/math/images/image_windows.hpp"
#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <span>

namespace troupe {

/// The extents of a convolution.
struct convolution_extents : image_windows {
  size_t outputs = 1; ///< Channels of the output.

  [[nodiscard]] constexpr size_t input_elements() const { return pixels() * channels; }

  [[nodiscard]] constexpr size_t weight_elements() const {
    return window_height * window_width * channels * outputs;
  }

  [[nodiscard]] constexpr size_t output_elements() const { return windows() * outputs; }
};

namespace detail {

/// Asserts that arrays of these sizes are the input, the weights and the output of a convolution.
inline void check_sizes(const convolution_extents& extents, size_t input, size_t weights,
                        size_t output) {
  TROUPE_ASSERT(input == extents.input_elements(), input, extents.input_elements());
  TROUPE_ASSERT(weights == extents.weight_elements(), weights, extents.weight_elements());
  TROUPE_ASSERT(output == extents.output_elements(), output, extents.output_elements());
}

} // namespace detail

// output[window, o] = sum over the window's pixels and channels of input[pixel, c] *
// weights[offset, c, o]; as in every network, the window is not mirrored. The gradients are those
// of this sum by `input` and by `weights`.
//
// Shape: input   [batch, height, width, channels]                  row-major f32 or f64
//        weights [window_height, window_width, channels, outputs]
//        output  [batch, output_height, output_width, outputs]
//        A gradient has the shape of the array that it is the gradient by.
//        Arrays that are written alias nothing.
// @pre No array has more than `image_elements_max` elements.
// A number that is not finite may also spread to gradients of weights that lie over padding alone.
// Cost: 2 * output elements * window_height * window_width * channels operations for each function.

namespace reference {

template <class T>
void convolve(const context&, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output);

template <class T>
void convolve_input_gradient(const context&, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient);

template <class T>
void convolve_weights_gradient(const context&, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient);

} // namespace reference

namespace cpu {

// As the reference: f32 through oneDNN, on the calling thread alone, so that sums have the same
// order on any number of cores; oneDNN has no f64, which is the reference. oneDNN keeps the
// programs that it makes for each shape, and takes memory of its own for weights in the order that
// they want. Errors: throws std::bad_alloc, if there is no such memory.

template <class T>
void convolve(const context&, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output);

template <class T>
void convolve_input_gradient(const context&, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient);

template <class T>
void convolve_weights_gradient(const context&, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient);

} // namespace cpu

namespace cuda {

// A thread for each element of the result, 16 for each of the weights' gradient; no cuDNN. Sums
// have a fixed order: all but those of the weights' gradient have the bits of the reference.

template <class T>
void convolve(const context&, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output);

template <class T>
void convolve_input_gradient(const context&, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient);

template <class T>
void convolve_weights_gradient(const context&, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient);

} // namespace cuda

} // namespace troupe
