// SPDX-License-Identifier: Apache-2.0
// Rows of a table, looked up by their index.
#pragma once

#include "kernels/tensor/context.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

// The sparse gradient of a lookup needs no arithmetic: it is the pair (indices, output gradient).

namespace detail {

/// The first element of a row of a table of so many elements. Asserts that the row is there.
inline size_t begin_of_row(int64_t row, size_t columns, size_t elements) {
  auto index = static_cast<uint64_t>(row);
  TROUPE_ASSERT(columns == 0 || index < elements / columns, row, columns, elements);
  return index * columns;
}

} // namespace detail

namespace reference {

/// The position of the first index outside [0, limit), or `indices.size()` if all are inside.
[[nodiscard]] size_t find_outside(const context&, std::span<const int64_t> indices, int64_t limit);

/// output[i] = table[indices[i]].
/// Shape: table    [table rows, columns]  row-major f32 or f64
///        indices  [rows]                 each at least 0 and less than table rows; may repeat
///        output   [rows, columns]        aliases neither
template <class T>
void embedding(const context&, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output);

/// table_gradient[indices[i]] += output_gradient[i], for i in ascending order.
/// Shape: output_gradient  [rows, columns]
///        indices          [rows]
///        table_gradient   [table rows, columns]  added to; aliases neither
template <class T>
void embedding_gradient(const context&, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient);

} // namespace reference

namespace cpu {

/// As the reference.
[[nodiscard]] size_t find_outside(const context&, std::span<const int64_t> indices, int64_t limit);

/// As the reference, bit for bit.
template <class T>
void embedding(const context&, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output);

/// As the reference, bit for bit.
template <class T>
void embedding_gradient(const context&, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient);

} // namespace cpu

namespace cuda {

/// As the reference; waits for its result.
[[nodiscard]] size_t find_outside(const context&, std::span<const int64_t> indices, int64_t limit);

/// As the reference, bit for bit. An index outside the table gives a row of NaN.
template <class T>
void embedding(const context&, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output);

/// As the reference, bit for bit; an index outside the table adds nothing.
/// Cost: a comparison of each lookup with each lookup and each row of the table.
template <class T>
void embedding_gradient(const context&, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient);

} // namespace cuda

} // namespace troupe
