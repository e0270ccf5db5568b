// SPDX-License-Identifier: Apache-2.0
// The rendezvous: where the replicas of one run meet for a merge_call, and where they end.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The outcome of a run.
struct run_outcome {
  std::vector<std::shared_ptr<void>> results; ///< By replica; empty if one failed.
  std::exception_ptr thrown;                  ///< The failure of the first that failed by itself.
  uint32_t culprit = 0;                       ///< Which replica that is, if there is a failure.
};

/// The replicas that a rendezvous waits for.
struct rendezvous_config {
  uint32_t replicas = 1;
  std::function<void(run_outcome)> on_over; ///< Told when every replica has left.
  job_time timeout{0}; ///< How long the run may take, for the error of one that takes longer.
  uint32_t first_replica = 0; ///< The number of the first replica here; others are elsewhere.
};

/// Replicas arrive at a merge_call and wait. When all have come, replica 0 gets their arguments and
/// runs its function; all go on with the result. A replica that leaves while others wait, or makes
/// another call than they, ends the run: the others are told which one it was, and none hangs. A
/// rendezvous that is told to give up ends the run, too. If it is told so again, it ends without
/// the replicas that have not left.
///
/// Merge functions are code, which cannot travel: a rendezvous stands in one process, and its
/// messages are plain values.
struct rendezvous_state {
  static inline const char* name = "rendezvous";

  /// Replica 0 computes while it runs the merge function.
  enum class whereabouts : uint8_t { computing, waiting, gone };

  /// One replica, as the rendezvous knows it.
  struct member {
    whereabouts where = whereabouts::computing;
    uint64_t calls = 0; ///< merge_calls that it has arrived at.
    bool told_to_stop = false;
    merge_arrival arrival; ///< If it waits.
    std::shared_ptr<void> result;
    std::exception_ptr thrown;
  };

  rendezvous_config config;
  std::vector<member> members;
  uint32_t waiting = 0;
  uint32_t gone = 0;
  bool merging = false;              ///< Replica 0 runs its function.
  bool gave_up = false;              ///< The run has taken too long.
  std::optional<error> why_it_ended; ///< Why the run ended before all replicas had left, if so.

  /// Names of the replicas in that state: "replica 2, replica 5".
  [[nodiscard]] std::string names_of(whereabouts where) const;
};

/// The behaviour of a rendezvous.
rendezvous_actor::behavior_type
rendezvous(observed_pointer<rendezvous_actor, rendezvous_state> self, rendezvous_config config);

} // namespace troupe
