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

/// Changes to a recorded run.
struct replay_options {
  sync_options sync;              ///< As it was recorded, or otherwise.
  std::vector<uint32_t> repaired; ///< Replicas that get the times of a typical one.
  /// Draws the order of events at equal times, and times for computations that were cut.
  uint64_t seed = 0;
  /// Computations that were cut take no longer than the longest that was completed, unless they
  /// were cut later: the least that can have been.
  bool no_longer_than_seen = false;
};

/// Computations that were cut short, of replicas that compute in a replay as they did.
struct cut_estimate {
  uint64_t gradients = 0; ///< These replicas' gradients, cut or completed.
  uint64_t cut = 0;
  uint64_t beyond = 0; ///< Drawn longer than every one that replicas like theirs completed.
  job_time longest{0}; ///< Completed by any of these replicas.
  /// Replicas unlike the others that hardly ever completed a gradient: times drawn for them are too
  /// short, and so is a step that waits for them.
  std::vector<uint32_t> unknown;
};

/// The cut gradients of a replay with these options.
[[nodiscard]] cut_estimate cut_estimate_of(const recorded_run& run, const replay_options& options);

/// Blocks of which `resampled` makes a run.
constexpr size_t resampled_blocks = 10;

/// Another run as this one might have been: long blocks of gradients, all replicas' from the same
/// places, that the seed draws. Long ones keep what lasts and what drifts.
[[nodiscard]] recorded_run resampled(const recorded_run& run, uint64_t seed);

/// The replica whose mean time is the median of all but `excluded`, which is what a repaired or
/// added one is expected to be. @pre One that came is not excluded.
[[nodiscard]] uint32_t typical_replica(const recorded_run& run, std::span<const uint32_t> excluded);

/// The recorded run as a scenario: each replica's n-th gradient takes as long as it took, each
/// update too; a replica that runs out of gradients begins with its first again.
///
/// - Repaired replicas, and those beyond the recorded ones, have the times of the typical one,
///   begun at another place, so that they are not late together with it.
/// - A gradient that was told to stop took at least so long; in its place stands a longer time of
///   what `survival_groups` tells of its replica.
/// - A replica that never came never comes.
///
/// It goes by durations: replicas that compete for one processor, or one wire, are assumed to
/// compete as before.
/// Errors: throws `failure` with invalid_argument if a repaired replica is none, or the typical one
/// would have to be found among none.
[[nodiscard]] scenario replay_of(const recorded_run& run, const replay_options& options);

/// How well a replay of the unchanged run reproduces it; shares of the recorded times.
struct replay_error {
  double mean_step = 0; ///< Error of the mean step time, with its sign.
  double median = 0;    ///< Error of single steps, without its sign.
  double p90 = 0;
};

/// @pre Neither is empty. Steps that only one of them made count for nothing.
[[nodiscard]] replay_error error_of(std::span<const double> recorded,
                                    std::span<const double> replayed);

} // namespace troupe
