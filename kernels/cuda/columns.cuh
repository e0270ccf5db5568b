// SPDX-License-Identifier: Apache-2.0
// Sums of the columns of a matrix on a GPU.
#pragma once

#include "kernels/cuda/launch.cuh"

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

namespace troupe::cuda {

// A thread for each column leaves a large device idle: a layer has some hundred columns, and some
// thousand rows. So rows are cut into chunks, of which blocks take one each; in a chunk, row r
// joins group r mod 8, groups are added up from the first to the last, and so are the chunks, in
// the same way, by a second pass. The order depends on rows and columns alone.

/// Columns that a block works on: neighbours, which a warp reads at once.
inline constexpr unsigned tile_columns = 32;

/// Rows of a tile that a block reads at once.
inline constexpr unsigned tile_rows = block_threads / tile_columns;

/// Blocks of the first pass, where there are rows enough: eight for each multiprocessor of the
/// largest devices.
inline constexpr size_t column_blocks_wanted = 1024;

/// Chunks at most, so that the second pass is short.
inline constexpr size_t column_chunks_max = 256;

/// Rows of a chunk at least: each thread adds up some.
inline constexpr size_t chunk_rows_min = 4 * tile_rows;

/// Rows of each chunk but the last one.
[[nodiscard]] inline size_t chunk_rows_of(size_t rows, size_t columns) {
  size_t tiles = (columns + tile_columns - 1) / tile_columns;
  size_t chunks = std::clamp<size_t>(column_blocks_wanted / tiles, 1, column_chunks_max);
  return std::max((rows + chunks - 1) / chunks, chunk_rows_min);
}

/// One array for each of some sums that are worked out together.
/// Shape: each  [chunks, columns]
template <size_t sums, class T>
struct column_sums {
  T* at[sums];

  /// The values that a second pass adds up: element `i` of each array.
  __device__ std::array<T, sums> operator()(size_t, size_t i) const {
    std::array<T, sums> values;
    for (size_t q = 0; q < sums; ++q)
      values[q] = at[q][i];
    return values;
  }
};

/// to.at[q] = the sums of value q of `element(row, i)` over each chunk of rows, i being the
/// element's place in the matrix.
template <size_t sums, class T, class Element>
__global__ void __launch_bounds__(block_threads)
  sum_columns_kernel(size_t rows, size_t columns, size_t chunk_rows, size_t chunks, Element element,
                     column_sums<sums, T> to) {
  static_assert(sums <= tile_rows, "a group of threads for each sum adds up those of all groups");
  TROUPE_SHARED(T, groups, [sums][tile_rows][tile_columns]);
  size_t tiles = (columns + tile_columns - 1) / tile_columns;
  unsigned group = threadIdx.x / tile_columns, lane = threadIdx.x % tile_columns;
  for (size_t block = blockIdx.x; block < chunks * tiles; block += gridDim.x) {
    size_t chunk = block / tiles, column = block % tiles * tile_columns + lane;
    size_t end = chunk * chunk_rows + chunk_rows;
    end = end < rows ? end : rows;
    std::array<T, sums> sum{};
    if (column < columns)
      for (size_t row = chunk * chunk_rows + group; row < end; row += tile_rows) {
        auto values = element(row, row * columns + column);
        for (size_t q = 0; q < sums; ++q)
          sum[q] += values[q];
      }
    for (size_t q = 0; q < sums; ++q)
      groups[q][group][lane] = sum[q];
    __syncthreads();
#pragma unroll
    for (size_t q = 0; q < sums; ++q) {
      if (group != q || column >= columns) continue;
      T total = groups[q][0][lane];
      for (unsigned next = 1; next < tile_rows; ++next)
        total += groups[q][next][lane];
      to.at[q][chunk * columns + column] = total;
    }
    __syncthreads(); // the next turn writes to the groups
  }
}

/// Queues to.at[q][column] = the sum of value q of `element(row, row * columns + column)` over all
/// rows. Arrays of `to` alias nothing that `element` reads.
template <size_t sums, class T, class Element>
void sum_columns(const context& on, size_t rows, size_t columns, const Element& element,
                 const column_sums<sums, T>& to) {
  if (columns == 0) return;
  size_t tiles = (columns + tile_columns - 1) / tile_columns;
  auto add = [&](size_t from_rows, size_t chunk_rows, size_t chunks, const auto& each,
                 const column_sums<sums, T>& result) {
    launch(on, blocks_for(chunks * tiles, 1), block_threads,
           sum_columns_kernel<sums, T, std::remove_cvref_t<decltype(each)>>, from_rows, columns,
           chunk_rows, chunks, each, result);
  };
  size_t chunk_rows = chunk_rows_of(rows, columns);
  if (rows <= chunk_rows) return add(rows, chunk_rows, 1, element, to);
  size_t chunks = (rows + chunk_rows - 1) / chunk_rows;
  auto room = on.workspace(sums * chunks * columns * sizeof(T));
  if (room == nullptr) return;
  column_sums<sums, T> partial;
  for (size_t q = 0; q < sums; ++q)
    partial.at[q] = reinterpret_cast<T*>(room.get()) + q * chunks * columns;
  add(rows, chunk_rows, chunks, element, partial);
  add(chunks, chunks, 1, partial, to);
}

} // namespace troupe::cuda
