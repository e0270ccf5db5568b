// SPDX-License-Identifier: Apache-2.0
// Rows brought to a root mean square of 1, then scaled by a learned vector.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/row_sizes.hpp"

#include <span>

namespace troupe {

namespace reference {

/// output[r, c] = input[r, c] / sqrt(mean of input[r]^2 + epsilon) * gain[c].
/// Shape: input, output  [rows, columns]  row-major f32 or f64; output may be input itself
///        gain           [columns]
///        inverse_roots  [rows]           for the gradient: 1 / sqrt(mean of squares + epsilon)
/// @pre input.size() is the product of the sizes of gain and inverse_roots.
/// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019, equation 4.
template <class T>
void rms_norm(const context&, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots);

/// The gradients of `rms_norm`. With h the normalised input and g = output_gradient * gain, row by
/// row: input_gradient = (g - h * mean(g * h)) * inverse_root.
/// Shape: input, output_gradient, input_gradient  [rows, columns]  input_gradient may be
///                                                output_gradient itself
///        gain, gain_gradient                     [columns]
template <class T>
void rms_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient);

} // namespace reference

namespace cpu {

/// As the reference; the sums of a row are added up in 16 partial sums.
template <class T>
void rms_norm(const context&, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots);

/// As the reference; the sums of a row are added up in 16 partial sums.
template <class T>
void rms_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient);

} // namespace cpu

namespace cuda {

/// As the cpu twin, bit for bit.
template <class T>
void rms_norm(const context&, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots);

/// As the cpu twin: the input's gradient bit for bit, that of the gain but for the order of
/// additions, which depends on the extents alone (kernels/cuda/columns.cuh).
template <class T>
void rms_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient);

} // namespace cuda

} // namespace troupe
