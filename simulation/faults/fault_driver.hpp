// SPDX-License-Identifier: Apache-2.0
// Carries out a plan of faults in a simulated network.
#pragma once

#include "simulation/faults/drawn_faults.hpp"
#include "simulation/faults/fault.hpp"
#include "simulation/faults/fault_draws.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/faults/lost_nodes.hpp"
#include "simulation/faults/network_partitions.hpp"
#include "simulation/faults/node_freezes.hpp"
#include "simulation/faults/planned_faults.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>

namespace troupe {

/// Carries out a plan in a network: planned faults at their times, and drawn faults as they come.
/// Each part answers one question.
///
/// Thread: that of the virtual world. The network outlives it, and rings no more after it.
class fault_driver {
public:
  /// @param plan Valid. @param seed Names the draws.
  fault_driver(simulated_network& network, const fault_plan& plan, uint32_t replicas, uint64_t seed)
    : log_(network.events()), draws_(plan.rates, seed), lost_(network, draws_, log_),
      freezes_(network, replicas, draws_, lost_, log_), partitions_(network, draws_, lost_, log_),
      planned_(network, plan.faults, freezes_, partitions_, lost_, log_),
      drawn_(network, replicas, draws_, freezes_, partitions_, lost_) {}

  fault_driver(const fault_driver&) = delete;
  fault_driver& operator=(const fault_driver&) = delete;

  /// Which faults have happened?
  [[nodiscard]] fault_log& log() { return log_; }

  /// Which nodes are lost, and when are they, or the job, back?
  [[nodiscard]] lost_nodes& lost() { return lost_; }

  /// When is each node frozen?
  [[nodiscard]] node_freezes& freezes() { return freezes_; }

  /// Which faults were planned, and which of them wait for a message or a gradient?
  [[nodiscard]] planned_faults& planned() { return planned_; }

private:
  fault_log log_;
  fault_draws draws_;
  lost_nodes lost_;
  node_freezes freezes_;
  network_partitions partitions_;
  planned_faults planned_;
  drawn_faults drawn_;
};

} // namespace troupe
