// SPDX-License-Identifier: Apache-2.0
// Sparse gradients on a GPU, an element of a combined row for each thread.
#include "kernels/cuda/sums.cuh"
#include "kernels/math/row_gathering.cuh"
#include "kernels/math/sparse.hpp"

#include <vector>

namespace troupe::cuda {

namespace {

/// A copy of an array of the host on the device; null after a failure.
template <class T>
std::shared_ptr<std::byte> copied(const context& on, std::span<const T> values) {
  auto result = on.workspace(values.size_bytes());
  if (result != nullptr) on.copy_from_host(values.data(), result.get(), values.size_bytes());
  return result;
}

} // namespace

template <class T>
row_gathering<T> gather_rows(const context& on, const sparse_sum& gradient) {
  std::vector<row_values> places;
  for (const auto& source : gradient.sources)
    places.push_back({source.values.data, source.values.type});
  row_gathering<T> result{{},
                          copied(on, std::span<const row_values>{places}),
                          copied(on, gradient.order.entries),
                          copied(on, gradient.order.starts)};
  result.from = {reinterpret_cast<const row_values*>(result.sources.get()),
                 reinterpret_cast<const row_entry*>(result.entries.get()),
                 reinterpret_cast<const size_t*>(result.starts.get()),
                 on.status() ? gradient.order.distinct() : 0,
                 gradient.width,
                 static_cast<T>(gradient.divisor),
                 static_cast<T>(gradient.scale),
                 static_cast<T>(gradient.limit),
                 gradient.divides_by_count,
                 gradient.scale_there};
  return result;
}

template <class T>
void combine(const context& on, const sparse_sum& gradient, std::span<T> values) {
  check<T>(gradient);
  TROUPE_ASSERT(values.size() == gradient.order.distinct() * gradient.width, values.size());
  auto rows = gather_rows<T>(on, gradient);
  T* out = values.data();
  auto write = [out, from = rows.from] __device__(size_t i) { out[i] = from.combined(i); };
  for_each(on, rows.from.element_count(), write);
}

template <class T>
void densify(const context& on, const sparse_sum& gradient, std::span<T> table) {
  check<T>(gradient, table.size());
  on.note(on.stream().clear(table.data(), table.size_bytes()));
  auto rows = gather_rows<T>(on, gradient);
  T* out = table.data();
  auto write
    = [out, from = rows.from] __device__(size_t i) { out[from.place(i)] = from.combined(i); };
  for_each(on, rows.from.element_count(), write);
}

template <class T>
void squared_norm(const context& on, const sparse_sum& gradient, std::span<double> number) {
  TROUPE_ASSERT(number.size() == 1, number.size());
  check<T>(gradient);
  auto rows = gather_rows<T>(on, gradient);
  auto square = [from = rows.from] __device__(size_t i) {
    double value = from.combined(i);
    return sum_values<1>{{value * value}};
  };
  sum_elements<1>(on, rows.from.element_count(), cpu::sum_chunk_elements, square, number.data());
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template row_gathering<T> gather_rows(const context&, const sparse_sum&);                        \
  template void combine(const context&, const sparse_sum&, std::span<T>);                          \
  template void densify(const context&, const sparse_sum&, std::span<T>);                          \
  template void squared_norm<T>(const context&, const sparse_sum&, std::span<double>);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::cuda
