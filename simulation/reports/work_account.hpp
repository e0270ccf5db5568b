// SPDX-License-Identifier: Apache-2.0
// The work of all replicas, and the cost of a gradient that counts.
#pragma once

#include "actors/policies/sync_policy.hpp"
#include "actors/recording/records.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// One replica's work.
struct replica_work {
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t cancelled = 0;
  double useful_seconds = 0; ///< Computed for gradients that counted.
  double wasted_seconds = 0; ///< Computed for others.
};

/// The work of all replicas. The seconds are replica-seconds; all but the first two add up to the
/// first.
struct work_totals {
  double replica_seconds = 0; ///< All replicas, dead or alive, times the time that passed.
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t cancelled = 0;
  double useful_seconds = 0;
  double stale_seconds = 0;     ///< Computed for gradients that came too late.
  double cancelled_seconds = 0; ///< Computed until the replica was told to stop.
  double down_seconds = 0;      ///< Replicas that were not there.
  double waiting_seconds = 0;   ///< The rest: tokens, messages, gradients that the run cut off.

  /// The time of all replicas for each gradient that counted; infinity if none did.
  [[nodiscard]] double replica_seconds_per_accepted() const;
};

/// Adds up step records. Memory: per replica.
class work_account {
public:
  /// @param policy Under `cancel` the records do not say how long a cancelled replica computed: it
  /// is since the step began, because a token takes no time to come.
  work_account(uint32_t replicas, sync_policy policy)
    : cancels_(traits_of(policy).cancels()), replicas_(replicas) {}

  /// Counts one more step.
  void add(const step_record& step);

  [[nodiscard]] const std::vector<replica_work>& replicas() const { return replicas_; }

  [[nodiscard]] work_totals totals() const;

private:
  void add_stale(const contribution& gradient);

  bool cancels_;
  std::vector<replica_work> replicas_;
  work_totals totals_;
};

} // namespace troupe
