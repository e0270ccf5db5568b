// SPDX-License-Identifier: Apache-2.0
// Sparse gradients in blocks of rows, on all cores.
#include "kernels/math/sparse.hpp"

#include "kernels/math/combine_row.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/tensor/vector_math.hpp"

namespace troupe::cpu {

namespace {

/// The sum of the squares of one combined row.
template <class T>
double squared_norm_of_row(const sparse_sum& gradient, size_t position) {
  double sum = 0;
  for (size_t column = 0; column < gradient.width; column += block_elements) {
    T row[block_elements];
    size_t count = std::min(block_elements, gradient.width - column);
    combine_row(gradient, position, column, count, row);
    sum += detail::sum_lanes<double>(count, [&](size_t i) { return double{row[i]} * row[i]; });
  }
  return sum;
}

} // namespace

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
void densify(const context& on, const sparse_sum& gradient, std::span<T> table) {
  check<T>(gradient, table.size());
  fill<T>(on, table, T{0});
  for_row_blocks(on, gradient, [&](size_t position, size_t column, size_t count) {
    combine_row(gradient, position, column, count,
                table.data() + place(gradient, position, column));
  });
}

template <class T>
double squared_norm(const context&, const sparse_sum& gradient) {
  check<T>(gradient);
  return parallel_sum(gradient.order.distinct(), [&](size_t begin, size_t end) {
    double sum = 0;
    for (size_t position = begin; position < end; ++position)
      sum += squared_norm_of_row<T>(gradient, position);
    return sum;
  });
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void combine(const context&, const sparse_sum&, std::span<T>);                          \
  template void densify(const context&, const sparse_sum&, std::span<T>);                          \
  template double squared_norm<T>(const context&, const sparse_sum&);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::cpu
