// SPDX-License-Identifier: Apache-2.0
// Sums on a GPU in the order of the cpu twins, so that they have the same bits.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/tensor/parallel.hpp"

#include <cstddef>
#include <memory>

namespace troupe::cuda {

// Elements are cut into chunks; in a chunk, element i joins lane i mod 16, then lane l joins lane l
// + 8, then 4, 2 and 1; chunks are added up in halves. A block works on a chunk: all threads work
// out elements, and 16 of them add up one lane each. The additions of a lane wait for each other,
// but the blocks of a multiprocessor take turns, and memory is the narrower place.

/// Some sums that are worked out together.
template <size_t count>
struct sum_values {
  double values[count];
};

inline constexpr unsigned sum_lanes = 16;

/// Elements that a block holds at a time.
inline constexpr unsigned sum_tile = 1024;

/// Lane l joins lane l + 8, then 4, 2 and 1.
__device__ inline double join_lanes(double* lanes) {
  for (unsigned width = sum_lanes / 2; width > 0; width /= 2)
    for (unsigned lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  return lanes[0];
}

/// partial[q * chunks + chunk] = the sum of value q of `element(i)` over the chunk's elements.
template <size_t sums, class Element>
__global__ void __launch_bounds__(block_threads)
  sum_chunks_kernel(size_t count, size_t chunk_elements, Element element, double* partial) {
  // Elements of each thread that are on their way at once; an element of two sums takes registers
  // enough.
  constexpr unsigned at_once = sums == 1 ? sum_tile / block_threads : 1;
  TROUPE_SHARED(double, tile, [sums][sum_tile]);
  TROUPE_SHARED(double, lanes, [sums][sum_lanes]);
  size_t chunks = (count + chunk_elements - 1) / chunk_elements;
  unsigned own_sum = threadIdx.x / sum_lanes, lane = threadIdx.x % sum_lanes;
  for (size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    size_t end = chunk * chunk_elements + chunk_elements;
    end = end < count ? end : count;
    double sum = 0;
    for (size_t begin = chunk * chunk_elements; begin < end; begin += sum_tile) {
      unsigned held = end - begin < sum_tile ? static_cast<unsigned>(end - begin) : sum_tile;
#pragma unroll 1
      for (unsigned first = threadIdx.x; first < held; first += at_once * block_threads) {
        sum_values<sums> taken[at_once]{};
#pragma unroll
        for (unsigned k = 0; k < at_once; ++k)
          if (first + k * block_threads < held)
            taken[k] = element(begin + first + k * block_threads);
#pragma unroll
        for (unsigned k = 0; k < at_once; ++k)
          for (size_t q = 0; q < sums; ++q)
            tile[q][first + k * block_threads] = taken[k].values[q];
      }
      __syncthreads();
      if (own_sum < sums)
        for (unsigned i = lane; i < held; i += sum_lanes)
          sum += tile[own_sum][i];
      __syncthreads();
    }
    if (own_sum < sums) lanes[own_sum][lane] = sum;
    __syncthreads();
    // Lanes are written again behind the barriers of the next chunk's first tile.
    if (own_sum < sums && lane == 0) partial[own_sum * chunks + chunk] = join_lanes(lanes[own_sum]);
  }
}

/// total[q] = the sum of the partial sums [q * chunks, (q + 1) * chunks), in halves: the first half
/// of them, plus the second, each in halves again; 0 for none. One block for each q.
__global__ void add_halves_kernel(size_t chunks, const double* partial, double* total);

/// Memory of the device for `count` sums of one kind, while a call lasts.
[[nodiscard]] inline std::shared_ptr<std::byte> room_for_sums(const context& on, size_t count) {
  return on.workspace(count * sizeof(double));
}

/// Queues total[q] = the partial sums in halves.
void add_halves(const context& on, size_t sums, size_t chunks, const double* partial,
                double* total);

/// Queues total[q] = the sums of value q of `element(i)` for i below `count`.
template <size_t sums, class Element>
void sum_elements(const context& on, size_t count, size_t chunk_elements, const Element& element,
                  double* total) {
  size_t chunks = (count + chunk_elements - 1) / chunk_elements;
  auto partial = room_for_sums(on, sums * chunks);
  if (partial == nullptr) return;
  auto* at = reinterpret_cast<double*>(partial.get());
  if (count > 0)
    launch(on, blocks_for(chunks, 1), block_threads, sum_chunks_kernel<sums, Element>, count,
           chunk_elements, element, at);
  add_halves(on, sums, chunks, at, total);
}

} // namespace troupe::cuda
