// SPDX-License-Identifier: Apache-2.0
// Chunks of a loop as tasks of oneTBB.
#include "kernels/tensor/parallel.hpp"

#include <algorithm>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

namespace troupe::cpu::detail {

namespace {

sum_pair operator+(const sum_pair& a, const sum_pair& b) {
  return {a[0] + b[0], a[1] + b[1]};
}

} // namespace

void run_chunks(const context& on, size_t count, const void* body,
                void (*call)(const void* body, size_t begin, size_t end)) {
  if (count == 0) return;
  size_t grain = std::max<size_t>(on.grain_elements, 1);
  if (count <= grain) return call(body, 0, count);
  size_t chunks = (count - 1) / grain + 1;
  tbb::parallel_for(size_t{0}, chunks, [&](size_t chunk) {
    call(body, chunk * grain, std::min(count, (chunk + 1) * grain));
  });
}

sum_pair sums_of_chunks(size_t count, const void* body,
                        sum_pair (*call)(const void* body, size_t begin, size_t end)) {
  if (count == 0) return sum_pair{};
  if (count <= sum_chunk_elements) return call(body, 0, count);
  size_t chunks = (count - 1) / sum_chunk_elements + 1;
  // Deterministic: the range is always halved down to one chunk, whichever threads do the halves.
  return tbb::parallel_deterministic_reduce(
    tbb::blocked_range<size_t>{0, chunks, 1}, sum_pair{},
    [&](const tbb::blocked_range<size_t>& range, const sum_pair& sum) {
      size_t begin = range.begin() * sum_chunk_elements;
      return sum + call(body, begin, std::min(count, range.end() * sum_chunk_elements));
    },
    [](const sum_pair& a, const sum_pair& b) { return a + b; });
}

} // namespace troupe::cpu::detail
