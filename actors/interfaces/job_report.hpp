// SPDX-License-Identifier: Apache-2.0
// The report of how a job ended.
#pragma once

#include "messages/errors/errc.hpp"

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

/// The state of a step that is not over.
struct open_step {
  uint64_t step = 0;   ///< Counted from 1.
  uint32_t live = 0;   ///< Replicas that were there.
  uint32_t needed = 0; ///< Gradients.
  /// Tokens in the queue, which no replica could take; nothing: the queue was not asked.
  std::optional<uint32_t> tokens;

  bool operator==(const open_step&) const = default;
};

/// How a job ended.
struct job_report {
  uint64_t step = 0;             ///< The global step it reached.
  std::optional<error> failure;  ///< Why it ended before its last step, unless it was asked to.
  std::optional<open_step> open; ///< The step that it ended at, if the chief found the failure.
  std::optional<std::string> stopped; ///< Why it was asked to end, if it was.
  std::vector<lost_replica> lost;
  bool has_begun = true; ///< False if its processes were not all there, or did not fit together.
};

} // namespace troupe
