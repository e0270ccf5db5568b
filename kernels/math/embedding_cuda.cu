// SPDX-License-Identifier: Apache-2.0
// The embedding on a GPU.
#include "kernels/cuda/matrix.cuh"
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

/// The rows of a table that indices name.
template <class T>
struct looked_up {
  const T* table;
  size_t rows;
  size_t columns;
  const int64_t* indices;
  T* output;

  template <size_t width>
  __device__ void work_on(const packet_place& here) const {
    auto row = static_cast<uint64_t>(indices[here.row]);
    packet<T, width> values;
    if (row < rows)
      values = load<width>(table, row * (columns / width) + here.in_row);
    else
      for (size_t k = 0; k < width; ++k)
        values.values[k] = std::numeric_limits<T>::quiet_NaN();
    store(output, here.index, values);
  }
};

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
  for_packets<T>(
    on, indices.size(), columns, are_aligned(packet_bytes, table.data(), output.data()),
    looked_up<T>{table.data(), table.size() / columns, columns, indices.data(), output.data()});
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
