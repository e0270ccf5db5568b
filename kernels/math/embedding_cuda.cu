// SPDX-License-Identifier: Apache-2.0
// The embedding on a GPU.
#include "kernels/cuda/matrix.cuh"
#include "kernels/math/embedding.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <limits>

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
struct row_lookup {
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

/// Lookups of a table, sorted by its rows; those of a row in the order in which they were made.
struct lookup_order {
  uint32_t* lookups;
  uint32_t* starts; ///< First of each row, then their number.
};

/// The row of a lookup. An index outside the table comes after all rows, where no row is looked
/// for.
__device__ uint32_t row_of(int64_t index, size_t rows) {
  return static_cast<uint64_t>(index) < rows ? static_cast<uint32_t>(index) : 0xffffffff;
}

// Each lookup, and each row after them, counts the lookups that come before it. This comparison of
// each with each takes less time than sorting would, and waits for nothing of the host: so a graph
// can have it.
__global__ void __launch_bounds__(block_threads)
  order_lookups_kernel(size_t count, size_t rows, const int64_t* indices, lookup_order to) {
  TROUPE_SHARED(uint32_t, staged, [block_threads]);
  for (size_t first = blockIdx.x * static_cast<size_t>(block_threads); first < count + rows + 1;
       first += threads_of_grid()) {
    size_t item = first + threadIdx.x;
    bool is_lookup = item < count;
    auto row = is_lookup ? row_of(indices[item], rows) : static_cast<uint32_t>(item - count);
    uint32_t earlier_limit = is_lookup ? row + 1 : row, before = 0;
    for (size_t begin = 0; begin < count; begin += block_threads) {
      unsigned held
        = count - begin < block_threads ? static_cast<unsigned>(count - begin) : block_threads;
      __syncthreads();
      if (threadIdx.x < held) staged[threadIdx.x] = row_of(indices[begin + threadIdx.x], rows);
      __syncthreads();
      uint32_t limit = begin < first ? earlier_limit : row;
      unsigned mixed = begin == first && threadIdx.x < held ? threadIdx.x : 0;
      for (unsigned k = 0; k < mixed; ++k)
        before += staged[k] < earlier_limit ? 1 : 0;
      for (unsigned k = mixed; k < held; ++k)
        before += staged[k] < limit ? 1 : 0;
    }
    if (is_lookup && row < rows)
      to.lookups[before] = static_cast<uint32_t>(item);
    else if (!is_lookup && item <= count + rows)
      to.starts[item - count] = before;
  }
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
  for_packets<T>(
    on, indices.size(), columns, are_aligned(packet_bytes, table.data(), output.data()),
    row_lookup<T>{table.data(), table.size() / columns, columns, indices.data(), output.data()});
}

template <class T>
void embedding_gradient(const context& on, std::span<const T> output_gradient,
                        std::span<const int64_t> indices, std::span<T> table_gradient) {
  if (indices.empty() || output_gradient.empty()) return;
  auto count = indices.size(), columns = output_gradient.size() / count;
  auto rows = table_gradient.size() / columns;
  TROUPE_ASSERT(std::max(count, rows) < std::numeric_limits<uint32_t>::max(), count, rows);
  auto room = on.workspace((count + rows + 1) * sizeof(uint32_t));
  if (room == nullptr) return;
  auto* lookups = reinterpret_cast<uint32_t*>(room.get());
  const lookup_order order{lookups, lookups + count};
  launch(on, blocks_for(count + rows + 1, block_threads), block_threads, order_lookups_kernel,
         count, rows, indices.data(), order);
  const T* from = output_gradient.data();
  T* out = table_gradient.data();
  auto add = [=] __device__(size_t i) {
    constexpr unsigned at_once = 16; // values on their way: each takes as long as the memory is far
    size_t row = i / columns, column = i % columns;
    uint32_t end = order.starts[row + 1];
    T sum = out[i];
    for (uint32_t begin = order.starts[row]; begin < end; begin += at_once) {
      T values[at_once]{};
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (begin + k < end) values[k] = from[order.lookups[begin + k] * columns + column];
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (begin + k < end) sum = sum + values[k];
    }
    out[i] = sum;
  };
  for_each(on, rows * columns, add);
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
