// SPDX-License-Identifier: Apache-2.0
// The share of a long job's time that failures of nodes leave.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// A job on nodes that fail. Times in seconds.
///
/// - Each node fails after an exponential time of this mean. The job needs `nodes` of the `nodes`
///   + `backups` nodes that compute; a node that has failed is back after `node_return`.
/// - If more than `backups` nodes are down at a time, the job stops: what was computed since the
///   last checkpoint is lost, and after detection and restart it goes on with all its nodes. If too
///   many fail in that time, detection and restart begin again.
/// - After each interval of work the job stands still for a checkpoint.
struct failure_model {
  double nodes = 1; ///< At least 1.
  uint32_t backups = 0;
  double node_mtbf = 1; ///< Mean time between failures of one node; above 0.
  double node_return = 0;
  double detection = 0;
  double restart = 0;
  double checkpoint_cost = 0;
};

/// For how long a job ran from one stop to the next: independent of checkpoints, so that intervals
/// are compared on the same failures.
struct failure_history {
  std::vector<double> stretches; ///< Each but the last of a horizon ended by a stop.
  std::vector<bool> ended;       ///< Whether it was ended by a stop, and not by the horizon.
  double seconds = 0;            ///< All horizons: stretches and stops together.
};

/// Draws the history of a job over a horizon, `runs` times with independent failures.
/// @pre The model's numbers are in range, and horizon is above 0.
[[nodiscard]] failure_history draw_failures(const failure_model& model, double horizon,
                                            uint64_t runs, uint64_t seed);

/// The share of the time that was useful work, if a checkpoint follows each `interval` of work.
/// @param interval Above 0.
[[nodiscard]] double goodput_of(const failure_history& history, double checkpoint_cost,
                                double interval);

/// The interval with the largest share of useful work: from a thousandth of the time to a stop, or
/// of the longest stretch if that is less, but no less than the checkpoint's cost, to the longest
/// stretch. Where checkpoints cost nothing that is the smallest one.
[[nodiscard]] double best_interval(const failure_history& history, double checkpoint_cost);

/// The mean time from the beginning of work to a stop: of all work there was, over the number of
/// stops, or over one where there was none.
[[nodiscard]] double mean_time_to_stop(const failure_history& history);

/// The best interval by Young's formula: sqrt(2 * cost * mtbf). @param mtbf The job's.
/// Source: Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974).
[[nodiscard]] double young_interval(double checkpoint_cost, double mtbf);

/// Daly's better one. Source: Daly, "A higher order estimate of the optimum checkpoint interval for
/// restart dumps", Future Generation Computer Systems 22 (2006), equation 37.
[[nodiscard]] double daly_interval(double checkpoint_cost, double mtbf);

/// The share of useful work without backups, by Daly's complete model: exponential failures, also
/// during checkpoints and restarts. Source: the same, equation 20.
[[nodiscard]] double daly_goodput(const failure_model& model, double interval);

} // namespace troupe
