// SPDX-License-Identifier: Apache-2.0
// Sparse gradients in blocks of rows, on all cores.
#include "kernels/sparse.hpp"

#include "kernels/combine_row.hpp"
#include "kernels/elementwise.hpp"

namespace troupe::cpu {

template <class T>
void combine(const context& on, const sparse_sum& gradient, std::span<T> values) {
  check<T>(gradient);
  TROUPE_ASSERT(values.size() == gradient.order.distinct() * gradient.width, values.size());
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    combine_row(gradient, position, column, count,
                values.data() + position * gradient.width + column);
  });
}

template <class T>
void scatter_add(const context& on, const sparse_sum& gradient, std::span<T> table) {
  check<T>(gradient, table.size());
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    T sum[block_elements];
    combine_row(gradient, position, column, count, sum);
    T* row = table.data() + place(gradient, position, column);
    for (size_t i = 0; i < count; ++i)
      row[i] += sum[i];
  });
}

template <class T>
void densify(const context& on, const sparse_sum& gradient, std::span<T> table) {
  check<T>(gradient, table.size());
  fill<T>(on, table, T{0});
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    combine_row(gradient, position, column, count,
                table.data() + place(gradient, position, column));
  });
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void combine(const context&, const sparse_sum&, std::span<T>);                          \
  template void scatter_add(const context&, const sparse_sum&, std::span<T>);                      \
  template void densify(const context&, const sparse_sum&, std::span<T>);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::cpu
