// SPDX-License-Identifier: Apache-2.0
// The figures of a running job so far, added up from its step records.
#pragma once

#include "actors/recording/records.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <map>

namespace troupe {

/// Gradients by their fate.
struct verdict_counts {
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t cancelled = 0;
};

/// Totals of one replica.
struct replica_figures {
  verdict_counts gradients;
  job_time computing{0};
  job_time waiting{0};                ///< For tokens.
  job_time arrived = job_time::min(); ///< When the newest gradient of it did.
  uint64_t staleness = 0;             ///< Steps by which that gradient was late; 0: there is none.
};

/// A summary is made when a job is over; these are the figures to look at while it goes on.
/// Thread: one owner at a time.
struct job_figures {
  /// Upper bounds of the classes of step times; the last class has none.
  static constexpr std::array step_seconds_bounds{
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0};

  uint64_t step = 0;
  uint64_t steps = 0;  ///< Counted here; `step` also has those of earlier jobs.
  uint32_t live = 0;   ///< Replicas that are there now.
  uint32_t needed = 0; ///< Gradients that the step under way waits for.
  double loss = std::numeric_limits<double>::quiet_NaN(); ///< The last step's loss.
  uint64_t examples = 0;                                  ///< Examples that updates learned from.
  verdict_counts gradients;
  std::array<uint64_t, step_seconds_bounds.size() + 1> step_seconds_counts{}; ///< By class.
  double step_seconds_total = 0;
  std::map<uint32_t, replica_figures> replicas;

  /// Gives each replica of the job its figures, also one that never gives a gradient.
  /// @param count Replicas of the job.
  void expect(uint32_t count);

  /// Counts one more step. Cost: a look-up for each of its gradients.
  void add(const step_record& record);
};

} // namespace troupe
