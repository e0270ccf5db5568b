// SPDX-License-Identifier: Apache-2.0
// A recorded run once more in virtual time, with one thing changed.
#pragma once

#include "actors/policies/sync_options.hpp"
#include "simulation/replay/recorded_run.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// What to change.
struct replay_options {
  sync_options sync;              ///< As it was recorded, or otherwise.
  std::vector<uint32_t> repaired; ///< Replicas that get the times of a typical one.
  uint64_t seed = 0;              ///< Draws the order of events at equal times.
};

/// The replica whose mean time is the median of all but `excluded`, which is what a repaired or
/// added one is expected to be. @pre One that came is not excluded.
[[nodiscard]] uint32_t typical_replica(const recorded_run& run, std::span<const uint32_t> excluded);

/// The recorded run as a scenario: each replica's n-th gradient takes as long as it took, each
/// update too; a replica that runs out of gradients begins with its first again.
///
/// - Repaired replicas, and those beyond the recorded ones, have the times of the typical one,
/// begun
///   at another place, so that they are not late together with it.
/// - A gradient that was told to stop took at least so long; in its place stands one of the same
///   replica, or else of any, that did take longer.
/// - A replica that never came never comes.
///
/// It goes by durations: replicas that compete for one processor, or one wire, are assumed to
/// compete as before.
/// Errors: throws `failure` with invalid_argument if a repaired replica is none, or the typical one
/// would have to be found among none.
[[nodiscard]] scenario replay_of(const recorded_run& run, const replay_options& options);

/// How well a replay of the unchanged run reproduces it; shares of the recorded times.
struct replay_error {
  double mean_step = 0; ///< Of the mean step time, with its sign.
  double median = 0;    ///< Of single steps, without it.
  double p90 = 0;
};

/// @pre Neither is empty. Steps that only one of them made count for nothing.
[[nodiscard]] replay_error error_of(std::span<const double> recorded,
                                    std::span<const double> replayed);

} // namespace troupe
