// SPDX-License-Identifier: Apache-2.0
// The same vector added to every row of a matrix.
#pragma once

#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <initializer_list>
#include <span>

namespace troupe {

namespace detail {

/// Asserts that arrays of these sizes are matrices of so many columns.
inline void check_sizes(size_t columns, std::initializer_list<size_t> matrices) {
  for (auto size : matrices) {
    TROUPE_ASSERT(size == *matrices.begin(), size, *matrices.begin());
    TROUPE_ASSERT(columns == 0 ? size == 0 : size % columns == 0, size, columns);
  }
}

} // namespace detail

namespace reference {

/// output[r, c] = input[r, c] + bias[c].
/// Shape: input   [rows, columns]  row-major f32 or f64
///        bias    [columns]
///        output  [rows, columns]  may be input itself
/// @pre input.size() is a multiple of bias.size(), and 0 if that is 0.
template <class T>
void add_bias(const context&, std::span<const T> input, std::span<const T> bias,
              std::span<T> output);

/// bias_gradient[c] = sum over r of output_gradient[r, c], added up from the first row to the last.
/// A sum is of type T: in f32 the error is some 1e-5 of it at 10^7 rows, and from 2^24 rows of like
/// size on it stands still.
/// Shape: output_gradient  [rows, columns]
///        bias_gradient    [columns]        aliases nothing
template <class T>
void bias_gradient(const context&, std::span<const T> output_gradient, std::span<T> bias_gradient);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void add_bias(const context&, std::span<const T> input, std::span<const T> bias,
              std::span<T> output);

/// As the reference, bit for bit.
template <class T>
void bias_gradient(const context&, std::span<const T> output_gradient, std::span<T> bias_gradient);

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit.
template <class T>
void add_bias(const context&, std::span<const T> input, std::span<const T> bias,
              std::span<T> output);

/// As the reference, but for the order of additions, which depends on the extents alone: groups and
/// chunks of rows (kernels/cuda/columns.cuh).
template <class T>
void bias_gradient(const context&, std::span<const T> output_gradient, std::span<T> bias_gradient);

} // namespace cuda

} // namespace troupe
