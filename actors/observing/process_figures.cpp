// SPDX-License-Identifier: Apache-2.0
// The figures of this process, asked from Linux.
#include "actors/observing/process_figures.hpp"

#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe {

process_figures look_at_process() {
  process_figures figures;
  uint64_t pages_in_all = 0;
  uint64_t pages = 0;
  if (std::ifstream{"/proc/self/statm"} >> pages_in_all >> pages)
    figures.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    for (const auto& part : {usage.ru_utime, usage.ru_stime})
      figures.cpu_seconds += static_cast<double>(part.tv_sec) + 1e-6 * double(part.tv_usec);
  return figures;
}

} // namespace troupe
