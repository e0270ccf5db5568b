// SPDX-License-Identifier: Apache-2.0
// A matrix with its rows as columns.
#pragma once

#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <span>

namespace troupe {

namespace detail {

/// Asserts that arrays of these sizes are a matrix of so many rows, and its transpose. @returns The
/// columns.
inline size_t columns_of(size_t rows, size_t input, size_t output) {
  auto columns = rows == 0 ? 0 : input / rows;
  TROUPE_ASSERT(input == rows * columns, input, rows);
  TROUPE_ASSERT(output == input, output, input);
  return columns;
}

} // namespace detail

namespace reference {

/// output[c, r] = input[r, c].
/// Shape: input   [rows, columns]  row-major f32 or f64
///        output  [columns, rows]  aliases nothing
template <class T>
void transpose(const context&, size_t rows, std::span<const T> input, std::span<T> output);

} // namespace reference

namespace cpu {

/// As the reference, by blocks of which the lines of both sides stay in the cache.
template <class T>
void transpose(const context&, size_t rows, std::span<const T> input, std::span<T> output);

} // namespace cpu

namespace cuda {

/// As the reference.
template <class T>
void transpose(const context&, size_t rows, std::span<const T> input, std::span<T> output);

} // namespace cuda

} // namespace troupe
