// SPDX-License-Identifier: Apache-2.0
// Chunks of a loop as tasks of oneTBB.
#include "kernels/parallel.hpp"

#include <algorithm>
#include <functional>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

namespace troupe::cpu::detail {

namespace {

/// Elements whose sum one task works out.
constexpr size_t sum_chunk_elements = 16384;

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

double sum_of_chunks(size_t count, const void* body,
                     double (*call)(const void* body, size_t begin, size_t end)) {
  if (count == 0) return 0;
  if (count <= sum_chunk_elements) return call(body, 0, count);
  size_t chunks = (count - 1) / sum_chunk_elements + 1;
  // Deterministic: the range is always halved down to one chunk, whoever works on the halves.
  return tbb::parallel_deterministic_reduce(
    tbb::blocked_range<size_t>{0, chunks, 1}, 0.0,
    [&](const tbb::blocked_range<size_t>& range, double sum) {
      size_t begin = range.begin() * sum_chunk_elements;
      return sum + call(body, begin, std::min(count, range.end() * sum_chunk_elements));
    },
    std::plus<double>{});
}

} // namespace troupe::cpu::detail
