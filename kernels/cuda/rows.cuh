// SPDX-License-Identifier: Apache-2.0
// Rows of a matrix on a GPU: 16 threads for each, with the same sums as the cpu twins' lanes.
#pragma once

#include "kernels/cuda/sums.cuh"

#include <cstddef>

namespace troupe::cuda {

/// Rows that a block works on at a time. Its threads stay together: all go through the same number
/// of rows, and those beyond the last one have no columns.
inline constexpr unsigned rows_at_once = block_threads / sum_lanes;

/// This thread's lane of its row.
__device__ inline unsigned lane_of_row() {
  return threadIdx.x % sum_lanes;
}

/// Calls `body(row, columns)` on the 16 threads of each row; where there is no row any more, with 0
/// columns, so that no thread is missing at a shuffle.
template <class Body>
__device__ void for_rows(size_t rows, size_t columns, const Body& body) {
  for (size_t first = static_cast<size_t>(blockIdx.x) * rows_at_once; first < rows;
       first += static_cast<size_t>(gridDim.x) * rows_at_once) {
    size_t row = first + threadIdx.x / sum_lanes;
    body(row, row < rows ? columns : 0);
  }
}

/// All lanes' values joined in the order of `cpu::detail::combine_lanes`; on every lane.
template <class T, class Join>
__device__ T join_row(T value, Join join) {
  constexpr unsigned all_threads = 0xffffffff;
  for (unsigned width = sum_lanes / 2; width > 0; width /= 2)
    value = join(value, __shfl_down_sync(all_threads, value, width, sum_lanes));
  return __shfl_sync(all_threads, value, 0, sum_lanes);
}

/// f(0) + f(1) + ... + f(columns - 1) in the order of `cpu::detail::sum_lanes`.
template <class T, class Function>
__device__ T sum_row(size_t columns, const Function& f) {
  T sum = 0;
  for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
    sum += f(i);
  return join_row(sum, [](T a, T b) { return a + b; });
}

} // namespace troupe::cuda
