// SPDX-License-Identifier: Apache-2.0
// Rows brought to mean 0 and variance 1, then scaled and shifted by learned vectors.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/row_sizes.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <span>

namespace troupe {

/// Numbers that the forward pass leaves for the backward pass, one of each kind per row.
/// Shape: means, inverse_deviations  [rows]
template <class T>
struct layer_norm_statistics {
  std::span<T> means;
  std::span<T> inverse_deviations; ///< 1 / sqrt(variance + epsilon)

  [[nodiscard]] size_t rows() const {
    TROUPE_ASSERT(inverse_deviations.size() == means.size(), means.size());
    return means.size();
  }
};

/// Where the three gradients go.
/// Shape: input  [rows, columns]  may be the output's gradient itself
///        gain   [columns]
///        bias   [columns]
template <class T>
struct layer_norm_gradients {
  std::span<T> input;
  std::span<T> gain;
  std::span<T> bias;
};

/// The two learned vectors.
/// Shape: gain, bias  [columns]
template <class T>
struct layer_norm_parameters {
  std::span<const T> gain;
  std::span<const T> bias;
};

namespace reference {

/// output[r, c] = (input[r, c] - mean[r]) / sqrt(variance[r] + epsilon) * gain[c] + bias[c].
/// Shape: input, output  [rows, columns]  row-major f32 or f64; output may be input itself
/// @pre input.size() is the product of the statistics' and the parameters' sizes.
/// Source: Ba, Kiros, Hinton, "Layer normalization", 2016, equations 3 and 4.
template <class T>
void layer_norm(const context&, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics);

/// The gradients of `layer_norm`. With h the normalised input and g = output_gradient * gain, row
/// by row: input_gradient = (g - mean(g) - h * mean(g * h)) * inverse_deviation.
/// Shape: input, output_gradient  [rows, columns]
template <class T>
void layer_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients);

} // namespace reference

namespace cpu {

/// As the reference; the sums of a row are added up in 16 partial sums.
template <class T>
void layer_norm(const context&, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics);

/// As the reference; the sums of a row are added up in 16 partial sums.
template <class T>
void layer_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients);

} // namespace cpu

namespace cuda {

/// As the cpu twin, bit for bit.
template <class T>
void layer_norm(const context&, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics);

/// As the cpu twin: the input's gradient bit for bit, those of gain and bias but for the order of
/// additions, which depends on the extents alone (kernels/cuda/columns.cuh).
template <class T>
void layer_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients);

} // namespace cuda

} // namespace troupe
