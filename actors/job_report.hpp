// SPDX-License-Identifier: Apache-2.0
// How a job ended.
#pragma once

#include "messages/errc.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A replica that left before the job was over.
struct lost_replica {
  uint32_t replica = 0;
  error reason;
};

/// How a job ended.
struct job_report {
  uint64_t step = 0;            ///< The global step it reached.
  std::optional<error> failure; ///< Why it ended before its last step, unless it was asked to.
  std::optional<std::string> stopped; ///< Who asked it to end, if somebody did.
  std::vector<lost_replica> lost;
  bool has_begun = true; ///< False if its processes were not all there, or did not fit together.
};

} // namespace troupe
