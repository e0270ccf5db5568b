// SPDX-License-Identifier: Apache-2.0
// A recorded run with one thing changed, and the time that it would have taken.
#pragma once

#include "simulation/replay/replay.hpp"
#include "tools/replay/run_folder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Changes to the recorded run.
struct replay_change {
  std::optional<uint64_t> replicas; ///< Nothing, here and below: as in the run.
  std::optional<uint64_t> aggregate;
  std::optional<sync_policy> policy;
  std::vector<uint32_t> repaired; ///< Replicas that take as long as a typical one.

  [[nodiscard]] bool is_none() const {
    return !replicas && !aggregate && !policy && repaired.empty();
  }
};

/// The options of `troupe sim replay` that ask for the change: "--aggregate 3 --repair 2,7".
[[nodiscard]] std::string option_text(const replay_change& change);

/// Steps of one replay.
struct replayed_steps {
  std::vector<double> seconds;
  double drop_fraction = 0;
  double wasted_replica_seconds = 0;
  std::optional<stall_report> stalled;
};

/// The recorded run, and the changed one.
struct replay_report {
  sync_options recorded_sync;
  sync_options changed_sync;
  std::vector<double> recorded; ///< Seconds of each step.
  replayed_steps unchanged;
  replay_error error;
  /// Mean step of the second half less that of the first, over that of all.
  double difference_of_halves = 0;
  std::optional<replayed_steps> changed;
  /// The mean step time of another run with the change; nothing if there are too few steps, or if
  /// the replay is a lower bound.
  std::optional<interval_estimate> prediction;
  /// The mean step time if no cut computation took longer than the longest completed one; nothing
  /// if none is drawn longer.
  std::optional<double> at_least;
  cut_estimate cut; ///< The changed replay's, without repaired replicas.
  /// Whether a step waits for replicas of which the run does not say how long they take.
  bool is_lower_bound = false;
};

/// Replays the run as it was, and with the change if there is one.
/// @param is_wanted Asked before each resampled run, by several threads. Errors: throws `failure`,
/// as `replay_of` and `sync_options::validate`; cancelled if it is not wanted any more.
[[nodiscard]] replay_report replay(const run_folder& folder, const replay_change& change,
                                   const std::function<bool()>& is_wanted = {});

} // namespace troupe
