// SPDX-License-Identifier: Apache-2.0
// A scenario run several times: means over the runs, and how sure they are.
#pragma once

#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Ends a job with faults whose step does not end, because the node that it waits for is frozen for
/// good, or crashes again and again.
inline constexpr job_time fault_deadline = std::chrono::seconds{100'000};

/// A scenario and the number of its runs.
struct experiment {
  sync_options sync;
  distribution compute;
  uint64_t steps = 1000;
  uint64_t warm_up = 50; ///< Steps at the beginning of each run that step times leave out.
  uint32_t dead = 0;     ///< The first so many replicas never start.
  local_sgd_options local_sgd;
  /// The network in the run of a seed; empty: messages take no time.
  std::function<network_options(uint64_t seed)> network;
  std::optional<collective_algorithm> collective = {}; ///< As in `scenario`, as what follows.
  uint32_t replicas_per_host = 1;
  fault_plan faults;
  job_time ask_again_after{0}; ///< As in `training_options`.
  /// The task that replicas learn in the run of a seed; empty: none.
  std::function<learning_options(uint64_t seed)> learning;
  double target_loss = std::numeric_limits<double>::quiet_NaN(); ///< NaN: none.
  uint64_t seed = 0; ///< The first run's; the others have the next ones.
  uint64_t runs = 1;
  std::optional<simulation_engine> engine = {}; ///< As in `scenario`.
  bool hashes = true;                           ///< As in `scenario`.
  unsigned threads = 1; ///< That make runs side by side; results do not depend on it.
  /// Told of every step of every run; with it, one run is made after the other.
  std::function<void(const step_record&)> on_step = {};
  /// Told of every message that reaches another node; then runs are made one after the other, too.
  std::function<void(const delivery&)> on_delivery = {};
};

/// Among fewer steps less than ten take longer than p99.9.
inline constexpr size_t steps_for_p999 = 10'000;

/// Times of steps, in seconds, of all runs and without their warm-up.
struct step_time_figures {
  double mean = 0;
  double standard_error = 0; ///< By `error_of`; with a trace, by the steps that were measured.
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0; ///< NaN if there are fewer than `steps_for_p999` steps.
  double max = 0;
  quantile_range p50_range; ///< In 95 of 100 cases.
  quantile_range p90_range;
  quantile_range p99_range;
};

/// Losses and the time to the target: means over all runs. NaN where there is nothing: no target,
/// or a run that never came to it; no slow replica.
struct learning_figures {
  double loss = 0; ///< At the end.
  double slow_loss = 0;
  double fast_loss = 0;
  double seconds_to_target = 0;
  std::vector<loss_point> curve; ///< The first run's.
};

/// How much of a trace a simulation used.
struct trace_use {
  named_trace trace;
  /// Simulated draws for each time that was measured for these replicas.
  double repeats = 0;
  bool is_exceeded = false; ///< There are more steps or replicas than in the trace.
};

/// The results of an experiment, over all runs.
struct experiment_report {
  step_time_figures step_time;                   ///< NaN if no step came after the warm-up.
  uint64_t timed_steps = 0;                      ///< Steps after the warm-up.
  batches_of_runs batches;                       ///< Mean step times, in seconds.
  std::map<uint64_t, uint64_t> staleness_counts; ///< As in `scenario_report`, as what follows.
  std::map<uint64_t, uint64_t> needed;
  uint64_t steps = 0; ///< That were made.
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint64_t cancelled = 0;
  uint64_t lost = 0;                      ///< Gradients that never arrived.
  uint64_t restarts = 0;                  ///< Restarts of jobs from their last snapshots.
  uint64_t undone_steps = 0;              ///< Part of `steps`: had to be made again.
  uint64_t undone_accepted = 0;           ///< Their gradients, a part of `accepted`.
  std::map<std::string, uint64_t> probes; ///< As in `scenario_report`.
  double wasted_replica_seconds = 0;
  double live_replica_seconds = 0;
  double virtual_seconds = 0;
  double down_seconds = 0; ///< From the ends of jobs to their restarts.
  double wall_seconds = 0;
  uint64_t events = 0;
  uint64_t log_hash = 0;          ///< Hash of all runs, in order.
  std::optional<trace_use> trace; ///< If computing times are of one.
  std::optional<learning_figures> learnt;
  std::optional<stall_report> stalled; ///< The first run that did.
  uint64_t stalled_seed = 0;           ///< The seed of that run.
  uint64_t stalled_runs = 0;           ///< Runs that did not make all their steps.

  /// Stale and cancelled over all gradients; 0 if there were none.
  [[nodiscard]] double drop_fraction() const;

  /// Mean steps that an accepted or stale gradient was late; 0 if there were none.
  [[nodiscard]] double mean_staleness() const;

  /// Half the interval that holds the true mean of the step time in 95 of 100 cases; NaN if there
  /// are too few steps. Steps beyond a measured trace make it no smaller.
  [[nodiscard]] double half_width() const;

  /// Mean gradients that a step waited for; 0 if there was none.
  [[nodiscard]] double mean_needed() const;

  /// False if a run stalled or was restarted, or no step was timed: then the mean step does not say
  /// how long many steps take.
  [[nodiscard]] bool is_whole() const;

  /// In virtual time, as what follows. Both leave out steps that were undone, and their gradients.
  [[nodiscard]] double updates_per_second() const;

  /// Accepted ones. If steps to the goal are as 1 / N, the job that makes most of them trains
  /// fastest.
  [[nodiscard]] double gradients_per_second() const;

  /// In real time.
  [[nodiscard]] double events_per_second() const;
};

/// As of the experiment's scenarios.
[[nodiscard]] std::string_view reason_for_actors(const experiment& experiment);
[[nodiscard]] std::string_view reason_against_collectives(const experiment& experiment);

/// False if step times have no variance, because so few replicas need to draw a long time for a
/// long step, and times have so heavy a tail: their mean is known much worse than its interval
/// says. True if the number of backups changes: then it is not known.
[[nodiscard]] bool has_step_variance(const experiment& experiment);

/// Runs the experiment. Two experiments with one seed are of the same draws: every replica's n-th
/// gradient takes as long in both. Errors: throws `failure` with invalid_argument, as
/// `sync_options::validate`, and as its task does.
[[nodiscard]] experiment_report run(const experiment& experiment);

/// A difference between two experiments as it is if a trace was measured no longer than it was.
[[nodiscard]] interval_estimate widened(const interval_estimate& difference,
                                        const experiment_report& report,
                                        const experiment_report& baseline);

/// How much longer a step takes than in `baseline`, which is of the same draws: run by run, batch
/// by batch. Nothing if one of both is too short for it, or has other steps, as if it has stalled.
[[nodiscard]] std::optional<interval_estimate>
step_time_difference(const experiment_report& report, const experiment_report& baseline);

} // namespace troupe
