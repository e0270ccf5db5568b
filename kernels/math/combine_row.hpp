// SPDX-License-Identifier: Apache-2.0
// The combined rows of sparse gradients, as every pass over them reads them.
#pragma once

#include "kernels/math/sparse.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "kernels/tensor/parallel.hpp"

#include <algorithm>

namespace troupe {

/// The divisor of the sum of the rows of one index.
template <class T>
[[nodiscard]] T divisor_of(const sparse_sum& gradient, std::span<const row_entry> rows) {
  return gradient.divides_by_count ? static_cast<T>(source_count(rows))
                                   : static_cast<T>(gradient.divisor);
}

/// Where an element of the combined row of the distinct index at `position` belongs in the table.
[[nodiscard]] inline size_t place(const sparse_sum& gradient, size_t position, size_t column) {
  return static_cast<size_t>(gradient.order.index(position)) * gradient.width + column;
}

namespace reference {

/// Element `column` of the combined row of the distinct index at `position`.
template <class T>
[[nodiscard]] T combined(const sparse_sum& gradient, size_t position, size_t column) {
  auto rows = gradient.order.rows(position);
  T sum{};
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& values = gradient.sources[rows[i].source].values;
    visit_floating(values.type, [&]<class From>(From) {
      T value = widen<T>(values.as<From>()[rows[i].row * gradient.width + column]);
      sum = i == 0 ? value : sum + value;
    });
  }
  return limited(sum / divisor_of<T>(gradient, rows) * static_cast<T>(gradient.scale),
                 static_cast<T>(gradient.limit));
}

} // namespace reference

namespace cpu {

/// Elements [column, column + count) of the combined row of the distinct index at `position`.
/// @pre `out` holds `count` elements and is disjoint from the sources.
template <class T>
void combine_row(const sparse_sum& gradient, size_t position, size_t column, size_t count, T* out);

/// Calls `body(position, column, count)` for blocks of all combined rows, shared between cores by
/// index: one thread works on all blocks of an index.
template <class Body>
void for_row_blocks(const context& on, const sparse_sum& gradient, const Body& body) {
  size_t distinct = gradient.order.distinct();
  if (distinct == 0) return;
  size_t elements_per_index = gradient.order.entries.size() / distinct * gradient.width;
  const context by_index{.grain_elements = on.grain_elements / elements_per_index};
  parallel_chunks(by_index, distinct, [&](size_t begin, size_t end) {
    for (size_t position = begin; position < end; ++position)
      for (size_t column = 0; column < gradient.width; column += block_elements)
        body(position, column, std::min(block_elements, gradient.width - column));
  });
}

} // namespace cpu

} // namespace troupe
