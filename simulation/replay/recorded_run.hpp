// SPDX-License-Identifier: Apache-2.0
// The times of a real run, from its ledger.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How long a replica was busy with a gradient.
struct recorded_time {
  job_time time{0};
  bool at_least = false; ///< It was told to stop then.
};

/// The times of a run. A replica is busy from the moment at which it may begin (it has pushed the
/// gradient before, and the update whose token it works for is there) until its gradient is there:
/// computing, reading and sending. Waiting for tokens and for updates is not in it, because that is
/// what another N, or another policy, would change.
struct recorded_run {
  uint64_t first_step = 0; ///< Updates before the first that was recorded: 0, if not resumed.
  std::vector<job_time> step_ends; ///< Begin of the first step, then each step's end.
  std::vector<job_time> updates;   ///< From the last needed gradient of each step to its end.
  std::vector<std::vector<recorded_time>> times; ///< [replica][gradient]; empty if it never came.
  /// From each replica's last gradient to the end of the run: the next one was not done by then.
  std::vector<job_time> unfinished;

  /// There were so many replicas; one that is in no line of the ledger never came.
  void set_replica_count(uint32_t count);

  [[nodiscard]] uint64_t step_count() const { return updates.size(); }

  /// How long each step took.
  [[nodiscard]] std::vector<double> step_seconds() const;
};

/// Reads what `ledger_file` writes. A last line that is cut off counts for nothing.
/// @param name Begins every error message.
/// Errors: malformed, naming the line; failed_precondition if it holds no step, or no gradient that
/// was accepted.
[[nodiscard]] expected<recorded_run> read_ledger(std::string_view text, const std::string& name);

} // namespace troupe
