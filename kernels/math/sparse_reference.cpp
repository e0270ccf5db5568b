// SPDX-License-Identifier: Apache-2.0
// Sparse gradients one element at a time.
#include "kernels/math/sparse.hpp"

#include "kernels/math/combine_row.hpp"

#include <algorithm>

namespace troupe::reference {

namespace {

/// Calls `body(position, column)` for every element of every combined row.
template <class Body>
void for_elements(const sparse_sum& gradient, const Body& body) {
  for (size_t position = 0; position < gradient.order.distinct(); ++position)
    for (size_t column = 0; column < gradient.width; ++column)
      body(position, column);
}

} // namespace

template <class T>
void combine(const context&, const sparse_sum& gradient, std::span<T> values) {
  check<T>(gradient);
  TROUPE_ASSERT(values.size() == gradient.order.distinct() * gradient.width, values.size());
  for_elements(gradient, [&](size_t position, size_t column) {
    values[position * gradient.width + column] = combined<T>(gradient, position, column);
  });
}

template <class T>
void densify(const context&, const sparse_sum& gradient, std::span<T> table) {
  check<T>(gradient, table.size());
  std::fill(table.begin(), table.end(), T{0});
  for_elements(gradient, [&](size_t position, size_t column) {
    table[place(gradient, position, column)] = combined<T>(gradient, position, column);
  });
}

template <class T>
double squared_norm(const context&, const sparse_sum& gradient) {
  check<T>(gradient);
  double total = 0;
  for_elements(gradient, [&](size_t position, size_t column) {
    auto value = static_cast<double>(combined<T>(gradient, position, column));
    total += value * value;
  });
  return total;
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void combine(const context&, const sparse_sum&, std::span<T>);                          \
  template void densify(const context&, const sparse_sum&, std::span<T>);                          \
  template double squared_norm<T>(const context&, const sparse_sum&);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::reference
