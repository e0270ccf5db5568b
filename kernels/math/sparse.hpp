// SPDX-License-Identifier: Apache-2.0
// Sparse gradients: rows of a table, in any order and more than once, from k replicas.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/elements.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace troupe {

/// The rows that one replica sends: row i of `values` belongs to row indices[i] of the table.
/// Shape: indices  [rows]         in any order, repeated or not
///        values   [rows, width]  row-major, of any floating type that widens to the variable's
struct row_source {
  std::span<const int64_t> indices;
  elements values;

  row_source(std::span<const int64_t> table_rows, elements row_values)
    : indices(table_rows), values(row_values) {}

  explicit row_source(const indexed_slices& slices)
    : indices(slices.indices.values<int64_t>()), values(slices.values) {}
};

// `find_outside` (kernels/math/embedding.hpp) checks the indices that come from a peer, before any
// function here sees them.

/// Where a row comes from: source, position in it, and the row of the table to which it belongs.
struct row_entry {
  int64_t index;
  uint32_t source;
  uint32_t row;
};

/// The rows of k sources, sorted so that those of one index lie together, in the order of sources
/// and of rows in a source: the order in which they are added up. Refers to the caller's memory.
struct row_order {
  std::span<const row_entry> entries;
  std::span<const size_t> starts; ///< First entry of each distinct index, then entries.size().

  [[nodiscard]] size_t distinct() const { return starts.empty() ? 0 : starts.size() - 1; }

  [[nodiscard]] int64_t index(size_t position) const { return entries[starts[position]].index; }

  /// The rows that belong to one distinct index.
  [[nodiscard]] std::span<const row_entry> rows(size_t position) const {
    return entries.subspan(starts[position], starts[position + 1] - starts[position]);
  }
};

/// Sparse gradients, and how they become one: the rows of each index are added up in order and
/// become one row, as the sources of a `gradient_sum` become one array.
struct sparse_sum {
  std::span<const row_source> sources;
  row_order order;
  size_t width = 1; ///< Elements of a row.
  double divisor = 1;
  double scale = 1;
  double limit = std::numeric_limits<double>::infinity(); ///< A clip by value; not negative.
  /// Divides each row by the number of sources that hold its index, in place of `divisor`: the mean
  /// of TensorFlow's sparse accumulators.
  bool divides_by_count = false;
  const double* scale_there = nullptr; ///< As of a `gradient_sum`.
};

/// Rows of all sources together.
[[nodiscard]] size_t row_count(std::span<const row_source> sources);

/// Sorts the rows of the sources by index.
/// @pre No index is negative, and no source has 2^32 rows.
/// Shape: entries  [2 * row_count(sources)]  workspace; the result refers to it
///        starts   [row_count(sources) + 1]  workspace; the result refers to it
/// Cost: two passes over the entries for every 11 bits of the largest index
[[nodiscard]] row_order order_rows(std::span<const row_source> sources,
                                   std::span<row_entry> entries, std::span<size_t> starts);

/// How many of the sources hold the index that these rows belong to.
[[nodiscard]] size_t source_count(std::span<const row_entry> rows_of_one_index);

/// Asserts that sources, order and width of a sparse gradient fit together, and fit T.
template <class T>
void check(const sparse_sum& gradient);

/// Asserts that also all rows lie in a table of so many elements.
template <class T>
void check(const sparse_sum& gradient, size_t table_elements);

namespace reference {

/// The combined row of each distinct index, ascending.
/// Shape: values  [distinct, width]  disjoint from the sources
template <class T>
void combine(const context&, const sparse_sum& gradient, std::span<T> values);

/// Writes the combined rows and zeros everywhere else: the dense form of the gradient.
/// Shape: table  [rows, width]  disjoint from the sources
template <class T>
void densify(const context&, const sparse_sum& gradient, std::span<T> table);

/// The sum of the squares of all combined rows, in double.
template <class T>
[[nodiscard]] double squared_norm(const context&, const sparse_sum& gradient);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void combine(const context&, const sparse_sum& gradient, std::span<T> values);

/// As the reference, bit for bit.
template <class T>
void densify(const context&, const sparse_sum& gradient, std::span<T> table);

/// As the reference but for the order of additions, which depends on the sizes alone.
template <class T>
[[nodiscard]] double squared_norm(const context&, const sparse_sum& gradient);

} // namespace cpu

namespace cuda {

// The order of the rows, and the indices, are memory of the host; only values lie on the device.

/// As the reference, bit for bit.
template <class T>
void combine(const context&, const sparse_sum& gradient, std::span<T> values);

/// As the reference, bit for bit.
template <class T>
void densify(const context&, const sparse_sum& gradient, std::span<T> table);

/// number[0] = that of the reference but for the order of additions, which depends on the sizes
/// alone; on the device, and waits for nothing.
/// Shape: number  [1]
template <class T>
void squared_norm(const context&, const sparse_sum& gradient, std::span<double> number);

} // namespace cuda

} // namespace troupe
