// SPDX-License-Identifier: Apache-2.0
// The embedding on a GPU.
#include "kernels/math/embedding.hpp"
#include "kernels/math/row_gathering.cuh"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::cuda {

namespace {

using position = unsigned long long; // what atomics take

__global__ void __launch_bounds__(block_threads)
  find_outside_kernel(size_t count, const int64_t* indices, uint64_t end, position* found) {
  for (size_t i = thread_of_grid(); i < count; i += threads_of_grid())
    if (static_cast<uint64_t>(indices[i]) >= end) atomicMin(found, static_cast<position>(i));
}

} // namespace

size_t find_outside(const context& on, std::span<const int64_t> indices, int64_t limit) {
  if (indices.empty()) return 0;
  auto room = on.workspace(sizeof(position));
  if (room == nullptr) return indices.size();
  auto place = on.host_workspace(sizeof(position));
  if (place == nullptr) return indices.size();
  auto& result = *reinterpret_cast<position*>(place.get());
  result = indices.size();
  auto* found = reinterpret_cast<position*>(room.get());
  on.note(on.stream().copy(&result, found, sizeof result));
  launch(on, blocks_for(indices.size(), block_threads), block_threads, find_outside_kernel,
         indices.size(), indices.data(), static_cast<uint64_t>(std::max<int64_t>(limit, 0)), found);
  on.note(on.stream().copy(found, &result, sizeof result));
  return on.synchronise() ? static_cast<size_t>(result) : indices.size();
}

template <class T>
void embedding(const context& on, std::span<const T> table, std::span<const int64_t> indices,
               std::span<T> output) {
  if (indices.empty()) return;
  auto columns = output.size() / indices.size();
  if (columns == 0) return;
  auto table_rows = table.size() / columns;
  const T* from = table.data();
  const int64_t* index_of = indices.data();
  T* to = output.data();
  auto look_up = [=] __device__(size_t i) {
    auto row = static_cast<uint64_t>(index_of[i / columns]);
    to[i]
      = row < table_rows ? from[row * columns + i % columns] : std::numeric_limits<T>::quiet_NaN();
  };
  for_each(on, output.size(), look_up);
}

template <class T>
void embedding_gradient(const context& on, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient) {
  if (indices.empty() || output_gradient.empty()) return;
  const row_source sources[] = {{indices, elements{output_gradient}}};
  std::vector<row_entry> entries(2 * indices.size());
  std::vector<size_t> starts(indices.size() + 1);
  const sparse_sum lookups{.sources = sources,
                           .order = order_rows(sources, entries, starts),
                           .width = output_gradient.size() / indices.size()};
  check<T>(lookups, table_gradient.size());
  auto rows = gather_rows<T>(on, lookups);
  T* out = table_gradient.data();
  auto add = [out, from = rows.from] __device__(size_t i) {
    size_t place = from.place(i);
    out[place] = from.added_to(out[place], i);
  };
  for_each(on, rows.from.element_count(), add);
}

template void embedding(const context&, std::span<const float>, std::span<const int64_t>,
                        std::span<float>);
template void embedding(const context&, std::span<const double>, std::span<const int64_t>,
                        std::span<double>);
template void embedding_gradient(const context&, std::span<const float>, std::span<const int64_t>,
                                 std::span<float>);
template void embedding_gradient(const context&, std::span<const double>, std::span<const int64_t>,
                                 std::span<double>);

} // namespace troupe::cuda
