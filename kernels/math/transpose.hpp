// SPDX-License-Identifier: Apache-2.0
// A matrix with its rows as columns.
#pragma once

#include "kernels/tensor/context.hpp"

#include <cstddef>
#include <span>

namespace troupe {

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
