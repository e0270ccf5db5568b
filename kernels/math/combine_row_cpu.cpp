// SPDX-License-Identifier: Apache-2.0
// The inner loop of every pass over sparse gradients: the rows of one index, added up.
#include "kernels/math/combine_row.hpp"

namespace troupe::cpu {

namespace {

template <class T, class From>
void begin_row(const From* from, size_t count, T* out) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    out[i] = widen<T>(from[i]);
}

template <class T, class From>
void continue_row(const From* from, size_t count, T* out) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < count; ++i)
    out[i] += widen<T>(from[i]);
}

template <class T>
void finish_row(T divisor, T scale, T limit, size_t count, T* out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = limited(out[i] / divisor * scale, limit);
}

template <class T>
void add_row(const elements& values, size_t at, size_t count, bool is_first, T* out) {
  visit_floating(values.type, [&]<class From>(From) {
    const auto* from = static_cast<const From*>(values.data) + at;
    if (is_first)
      begin_row(from, count, out);
    else
      continue_row(from, count, out);
  });
}

} // namespace

template <class T>
void combine_row(const sparse_sum& gradient, size_t position, size_t column, size_t count, T* out) {
  auto rows = gradient.order.rows(position);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& values = gradient.sources[rows[i].source].values;
    add_row(values, rows[i].row * gradient.width + column, count, i == 0, out);
  }
  finish_row(divisor_of<T>(gradient, rows), static_cast<T>(gradient.scale),
             static_cast<T>(gradient.limit), count, out);
}

template void combine_row(const sparse_sum&, size_t, size_t, size_t, float*);
template void combine_row(const sparse_sum&, size_t, size_t, size_t, double*);

} // namespace troupe::cpu
