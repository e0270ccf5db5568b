// SPDX-License-Identifier: Apache-2.0
// The embedding on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/embedding.hpp"

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

/// A block for each position. The first one that holds an index adds up the rows of all that hold
/// it, in order: nobody else writes to that row of the table.
template <class T>
__global__ void __launch_bounds__(block_threads)
  embedding_gradient_kernel(size_t rows, size_t columns, size_t table_rows, const T* gradient,
                            const int64_t* indices, T* table) {
  TROUPE_SHARED(bool, holds_it, [block_threads]);
  TROUPE_SHARED(unsigned, held_before);
  for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t index = indices[row];
    if (static_cast<uint64_t>(index) >= table_rows) continue; // for all threads alike
    if (threadIdx.x == 0) held_before = 0;
    __syncthreads();
    for (size_t i = threadIdx.x; i < row; i += blockDim.x)
      if (indices[i] == index) held_before = 1; // whoever writes, writes the same
    __syncthreads();
    if (held_before == 0) {
      for (size_t first = row; first < rows; first += blockDim.x) {
        size_t mine = first + threadIdx.x;
        holds_it[threadIdx.x] = mine < rows && indices[mine] == index;
        __syncthreads();
        for (size_t i = 0; i < blockDim.x; ++i)
          if (holds_it[i])
            for (size_t column = threadIdx.x; column < columns; column += blockDim.x)
              table[static_cast<size_t>(index) * columns + column]
                += gradient[(first + i) * columns + column];
        __syncthreads();
      }
    }
    __syncthreads();
  }
}

} // namespace

size_t find_outside(const context& on, std::span<const int64_t> indices, int64_t limit) {
  if (indices.empty()) return 0;
  auto room = on.workspace(sizeof(position));
  if (room == nullptr) return indices.size();
  auto place = on.host_memory().allocate(sizeof(position));
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
  if (indices.empty()) return;
  auto columns = output_gradient.size() / indices.size();
  if (columns == 0) return;
  launch(on, blocks_for(indices.size(), 1), block_threads, embedding_gradient_kernel<T>,
         indices.size(), columns, table_gradient.size() / columns, output_gradient.data(),
         indices.data(), table_gradient.data());
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
