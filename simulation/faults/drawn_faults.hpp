// SPDX-License-Identifier: Apache-2.0
// The faults that come by chance.
#pragma once

#include "simulation/faults/fault_draws.hpp"
#include "simulation/faults/lost_nodes.hpp"
#include "simulation/faults/network_partitions.hpp"
#include "simulation/faults/node_freezes.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>

namespace troupe {

/// Begins faults at times that are drawn by their rates: crashes and freezes of each replica, waves
/// of crashes, swizzles. Each one draws the next of its kind.
class drawn_faults {
public:
  /// All outlive this.
  drawn_faults(simulated_network& network, uint32_t replicas, fault_draws& draws,
               node_freezes& freezes, network_partitions& partitions, lost_nodes& lost);

private:
  void draw_crash(uint32_t replica);
  void draw_wave();
  void draw_swizzle();
  [[nodiscard]] bool may_crash() const;

  const simulated_nodes& nodes_;
  timed_events& events_;
  uint32_t replicas_;
  fault_draws& draws_;
  network_partitions& partitions_;
  lost_nodes& lost_;
};

} // namespace troupe
