// SPDX-License-Identifier: Apache-2.0
// Whole jobs of a `multi_worker_mirrored_strategy`, all processes in one virtual world.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "tests/sim/meeting_plan.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::test {

/// The outcome of one process.
struct meeting_process {
  std::optional<job_time> ended; ///< When its program ended.
  bool was_killed = false;       ///< Nothing that its program did after that counts.
  error thrown;                  ///< The error that its program threw, outside of `train`.
  std::optional<job_report> report;
  std::optional<meeting_values> last; ///< The variables after training.
  /// By updates made, what its replicas read: bit-equal for all of them, or `differs` says where.
  std::map<uint64_t, meeting_values> read;
  std::string differs;

  /// The error that its program saw; none if nothing went wrong.
  [[nodiscard]] error failure() const;
};

/// The course of a job.
struct meeting_course {
  meeting_plan plan;
  std::vector<meeting_process> processes; ///< By rank.
  std::vector<job_snapshot> snapshots;    ///< Snapshots that the first process's hooks got.
  std::map<std::string, uint64_t> counts; ///< The network's `counts`.
  std::map<size_t, uint64_t> step_at;     ///< By trouble: the furthest step when it begins.
  uint64_t log_hash = 0;    ///< Hash of every message that arrived, and when; and of the ends.
  uint64_t actors_left = 0; ///< Actors that run when all is over.

  /// The job, and what each process came to, for people: a line each.
  [[nodiscard]] std::string describe() const;
};

/// Runs a job: the same plan gives the same course.
[[nodiscard]] meeting_course run_meeting(const meeting_plan& plan);

/// The job that goes on from the last snapshot of one that did not come to its end: nothing goes
/// wrong in it, and its replicas are in another number of processes, if there is another. Nothing,
/// if there is no snapshot, or nothing left to do.
[[nodiscard]] std::optional<meeting_plan> resumed(const meeting_course& course);

/// The complaints about a job that was run, a line each, after the job in a line; empty if all is
/// well.
[[nodiscard]] std::string judge(const meeting_course& course);

} // namespace troupe::test
