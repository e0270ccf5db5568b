// SPDX-License-Identifier: Apache-2.0
// The end of every sum: the sums of chunks, added up in halves.
#include "kernels/cuda/sums.cuh"

namespace troupe::cuda {

namespace {

/// A part of the chunks, cut in halves until one is left.
struct chunk_range {
  size_t begin;
  size_t count;

  [[nodiscard]] __device__ chunk_range first() const { return {begin, count / 2}; }

  [[nodiscard]] __device__ chunk_range second() const {
    return {begin + count / 2, count - count / 2};
  }
};

/// Halvings after which each thread of a block has a part of its own.
constexpr unsigned levels = 8;
static_assert(block_threads == 1U << levels);

/// The part that is left after so many halvings, each to the side that a bit of `path` names, from
/// the highest on. A single chunk stays so, and lies on the path on which all further bits are 0;
/// `is_there` turns false on others.
__device__ chunk_range part_of(chunk_range whole, unsigned path, unsigned depth, bool& is_there) {
  is_there = true;
  for (unsigned level = 0; level < depth; ++level) {
    bool goes_second = (path >> (levels - 1 - level) & 1) != 0;
    if (whole.count > 1)
      whole = goes_second ? whole.second() : whole.first();
    else if (goes_second)
      is_there = false;
  }
  return whole;
}

/// The sum of a part. A stack holds the open ranges: the first half of each is being added up, or
/// the second half is, together with the first half's sum.
__device__ double add_part(const double* partial, chunk_range part) {
  struct open_range {
    chunk_range second;
    double first_sum;
    bool has_first;
  };

  open_range stack[64];
  unsigned height = 0;
  for (;;) {
    while (part.count > 1) {
      stack[height++] = {part.second(), 0, false};
      part = part.first();
    }
    double sum = partial[part.begin];
    while (height > 0 && stack[height - 1].has_first)
      sum = stack[--height].first_sum + sum;
    if (height == 0) return sum;
    stack[height - 1].first_sum = sum;
    stack[height - 1].has_first = true;
    part = stack[height - 1].second;
  }
}

} // namespace

__global__ void __launch_bounds__(block_threads)
  add_halves_kernel(size_t chunks, const double* partial, double* total) {
  TROUPE_SHARED(double, sums, [block_threads]);
  const chunk_range all{0, chunks};
  const double* from = partial + blockIdx.x * chunks;
  unsigned path = threadIdx.x;
  bool is_there = true;
  auto mine = part_of(all, path, levels, is_there);
  sums[path] = is_there && chunks > 0 ? add_part(from, mine) : 0;
  __syncthreads();
  // Threads with 0 in the last bits take the sum of the other side, where there is one.
  for (unsigned level = levels; level-- > 0;) {
    unsigned other = 1U << (levels - 1 - level);
    if (path % (2 * other) == 0 && part_of(all, path, level, is_there).count > 1 && is_there)
      sums[path] += sums[path + other];
    __syncthreads();
  }
  if (path == 0) total[blockIdx.x] = sums[0];
}

void add_halves(const context& on, size_t sums, size_t chunks, const double* partial,
                double* total) {
  launch(on, static_cast<unsigned>(sums), block_threads, add_halves_kernel, chunks, partial, total);
}

} // namespace troupe::cuda
