// SPDX-License-Identifier: Apache-2.0
// The actors of one run: its replicas, and the rendezvous where they meet.
#pragma once

#include "actors/training/rendezvous.hpp"
#include "strategies/contexts/replica_function.hpp"

#include <functional>
#include <vector>

namespace troupe {

class strategy;

/// The actors of one run. They end by themselves when their functions have returned.
struct replica_group {
  rendezvous_actor meeting;
  std::vector<replica_actor> replicas;

  /// Ends replicas that do not end by themselves.
  void kill_replicas() const;

  /// Ends the replicas and the rendezvous, which then tells no outcome.
  void kill() const;
};

/// Spawns the replicas of a run.
/// @param bodies The function of each replica.
/// @param on_over Told once, by the rendezvous, when all have returned.
replica_group start_replicas(strategy& strategy, std::vector<replica_body> bodies,
                             std::function<void(run_outcome)> on_over);

} // namespace troupe
