// SPDX-License-Identifier: Apache-2.0
// Chunks of a loop as tasks of oneTBB.
#include "kernels/parallel.hpp"

#include <algorithm>
#include <tbb/parallel_for.h>

namespace troupe::cpu::detail {

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

} // namespace troupe::cpu::detail
