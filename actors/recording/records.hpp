// SPDX-License-Identifier: Apache-2.0
// The records of a job: plain values from actors, of which files, plots and summaries are made.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Time since the job began, on the clock of its world (real or virtual).
using job_time = std::chrono::nanoseconds;

/// One gradient as the accumulators saw it.
struct contribution {
  uint32_t replica = 0;
  uint64_t local_step = 0; ///< The global step that the gradient was computed for.
  /// Updates since its token, not counting its own. By so many steps it is stale, or late if it is
  /// accepted (where training is asynchronous).
  uint64_t staleness = 0;
  job_time arrived{0};   ///< When the last of its variables' gradients came in.
  job_time compute{0};   ///< Time that the replica spent on it, measured before the barrier.
  job_time waited{0};    ///< How long the replica had waited for the token that began it.
  double loss = 0;       ///< Mean over the replica's batch; NaN if the trainer reports none.
  uint32_t examples = 0; ///< In the replica's batch; 0 if the trainer reports none.
};

/// One variable's part of an update, or that of several on a device, which are updated together.
struct variable_update {
  std::string variable; ///< Its name; of several: "w and 3 more".
  job_time ended{0};    ///< When its owner was done.
  job_time took{0};     ///< Time of the pass over memory; on a GPU, to queue it.
};

/// One synchronous step: one update of all variables.
struct step_record {
  uint64_t step = 0; ///< The global step after the update; the first update gives 1.
  job_time began{0}; ///< When the update before it was done (the job's start for the first).
  job_time ended{0}; ///< When the last owner had applied this one.
  job_time apply{0}; ///< Time from the last needed gradient to `ended`.
  uint32_t needed = 0;
  uint32_t live = 0;
  std::vector<contribution> accepted;  ///< In order of arrival: the others waited for the last one.
  std::vector<contribution> stale;     ///< Dropped since the update before this one.
  std::vector<contribution> cancelled; ///< Told to stop, because the step had enough without them.
  std::vector<variable_update> updates; ///< All variables' updates, in order of completion.
};

/// One event on the timeline of one actor.
struct timeline_event {
  enum class kind : uint8_t {
    span,       ///< Something that took `duration`.
    flow_start, ///< An arrow leaves here (a gradient was pushed) ...
    flow_end,   ///< ... and ends here (the token that answers it came in).
    instant,    ///< A moment: a replica left, a step was cancelled.
  };
  kind what = kind::span;
  std::string actor; ///< The track: "replica 2", "owner embedding", "chief".
  std::string name;  ///< "compute", "wait", "apply", ...
  job_time start{0};
  job_time duration{0};
  uint64_t flow = 0; ///< Pairs a flow_start with its flow_end.
  uint64_t step = 0; ///< The step it belongs to, shown beside it.
};

} // namespace troupe
