// SPDX-License-Identifier: Apache-2.0
// The summary of a run: the times of its steps, and the gradients and times of each replica.
#pragma once

#include "actors/recording/duration_sample.hpp"
#include "actors/recording/records.hpp"
#include "actors/recording/stopped_gradients.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe {

/// Gradients and times of one replica, summed over the run.
struct replica_summary {
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t cancelled = 0;     ///< Never came: the replica was told to stop.
  uint64_t staleness_max = 0; ///< The most steps that a gradient of it came too late.
  job_time compute{0};        ///< Spent on gradients, used or not.
  job_time wasted{0};         ///< The part of `compute` for gradients that no update used.
  job_time waiting{0};        ///< Spent waiting for tokens.
  job_time held_up{0}; ///< Time that the others waited for it, summed, in steps that it completed.

  bool operator==(const replica_summary&) const = default;

  /// All its gradients, whatever became of them.
  [[nodiscard]] uint64_t gradients() const { return accepted + stale + cancelled; }

  /// Adds another replica's figures; `staleness_max` becomes the larger one.
  replica_summary& operator+=(const replica_summary& other);
};

/// Adds up step records and prints the totals. A contribution counts when its step's record comes
/// in; gradients under way when the run ended are in none. Thread: one owner at a time. Cost:
/// constant per contribution; memory per replica, and `duration_sample`.
class summary {
public:
  /// Gives each replica of the job a line, also one that never gives a gradient.
  /// @param count Replicas of the job.
  void expect(uint32_t count);

  /// Counts one more step.
  void add(const step_record& step);

  /// Totals over the run, by replica.
  [[nodiscard]] const std::map<uint32_t, replica_summary>& replicas() const { return replicas_; }

  /// The totals of all replicas together; `staleness_max` is the largest of them.
  [[nodiscard]] replica_summary total() const;

  /// How long the steps took.
  [[nodiscard]] const duration_sample& step_times() const { return step_times_; }

  /// Gradients that no update used (stale and cancelled) over all gradients; 0 if there were none.
  [[nodiscard]] double drop_fraction() const;

  /// Examples that the updates learned from.
  [[nodiscard]] uint64_t examples() const { return examples_; }

  /// From the start of the job to the end of the last step, with the time before the job was
  /// resumed.
  [[nodiscard]] job_time elapsed() const { return elapsed_; }

  /// A few lines and a table with a line for each replica, for a terminal. If there are more than
  /// `replica_lines_max` replicas, only those that gave none or lost most gradients are listed.
  [[nodiscard]] std::string text() const;

  /// Lines of the table at most, so that a run of thousands of replicas does not flood the
  /// terminal.
  static constexpr size_t replica_lines_max = 32;

private:
  void count_accepted(const step_record& step);
  void count_cancelled(const contribution& gradient);
  void count_stale(const contribution& gradient);

  std::map<uint32_t, replica_summary> replicas_;
  stopped_gradients stopped_;
  duration_sample step_times_;
  uint64_t examples_ = 0;
  job_time began_{0}; ///< When the first step did: the clock of a job that is resumed goes on.
  job_time elapsed_{0};
};

} // namespace troupe
