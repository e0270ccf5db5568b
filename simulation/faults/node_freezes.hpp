// SPDX-License-Identifier: Apache-2.0
// The times in which nodes are frozen.
#pragma once

#include "simulation/faults/fault_draws.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/faults/lost_nodes.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A node that is frozen neither computes nor talks. A computation has to know its freezes before
/// they begin, so planned and drawn ones are kept together, and drawn ones are drawn ahead.
class node_freezes {
public:
  /// A time in which a node is frozen.
  struct window {
    job_time begin{0};
    job_time end{0};
  };

  /// All outlive this. None is drawn yet.
  node_freezes(simulated_network& network, uint32_t replicas, fault_draws& draws, lost_nodes& lost,
               fault_log& log);

  /// The node is frozen then; freezes may overlap.
  void add(node_index node, window freeze);

  /// Draws freezes of a replica by their rate, up to the first that ends later than `until`. Each
  /// draws the next when it ends.
  void draw(uint32_t replica, job_time until);

  /// How long a computation lasts that begins now and would, without freezes, take `time`.
  [[nodiscard]] job_time stretched(uint32_t replica, job_time time);

private:
  /// The freezes of a replica.
  struct replica_freezes {
    std::vector<window> windows; ///< By their beginnings.
    job_time drawn_until{0};
  };

  simulated_network& network_;
  const simulated_nodes& nodes_;
  timed_events& events_;
  fault_draws& draws_;
  lost_nodes& lost_;
  fault_log& log_;
  std::vector<replica_freezes> freezes_; ///< By replica.
};

} // namespace troupe
