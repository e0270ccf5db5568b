// SPDX-License-Identifier: Apache-2.0
// The operating system's figures of a process.
#pragma once

#include <cstdint>

namespace troupe {

/// Memory and processor time that a process takes.
struct process_figures {
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
};

/// Asks the operating system about this process. Zeros where it does not tell.
[[nodiscard]] process_figures look_at_process();

} // namespace troupe
