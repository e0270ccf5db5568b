// SPDX-License-Identifier: Apache-2.0
// The limit on restarts of a failed actor, and the time before each.
#pragma once

#include "actors/recording/records.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace troupe {

/// Another restart does not mend a failure that comes again and again: so there is a limit.
struct restart_options {
  uint32_t restarts = 3;                             ///< At most so many ...
  job_time within = std::chrono::seconds{60};        ///< ... in any time of this length, above 0.
  job_time backoff = std::chrono::milliseconds{100}; ///< Before the first of these; then doubled.
  job_time backoff_max = std::chrono::seconds{10};
  bool together = false; ///< Whether all actors of a supervisor begin anew when one fails.
};

/// Counts the restarts of one actor, or of several that restart together.
class restart_ledger {
public:
  explicit restart_ledger(const restart_options& options) : options_(options) {}

  /// Another failure. @param now Never before an earlier one.
  /// @returns The time until the restart; nothing, if there were too many.
  [[nodiscard]] std::optional<job_time> next(job_time now);

private:
  restart_options options_;
  std::deque<job_time> failures_; ///< Failures that led to a restart and still count.
};

} // namespace troupe
