// SPDX-License-Identifier: Apache-2.0
// The processor time that a process has used.
#pragma once

#include <sys/resource.h>

/// Seconds of all its threads so far, the system's part included.
inline double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}
