// SPDX-License-Identifier: Apache-2.0
// The nodes that are cut off from others.
#pragma once

#include "simulation/faults/fault_draws.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/faults/lost_nodes.hpp"
#include "simulation/network/simulated_network.hpp"

#include <set>
#include <vector>

namespace troupe {

/// Cuts nodes off from others by cuts of the network, and heals these in time.
class network_partitions {
public:
  /// All outlive this.
  network_partitions(simulated_network& network, fault_draws& draws, lost_nodes& lost,
                     fault_log& log);

  /// Messages from `nodes` to `others` wait from now on, and those back unless it is `one_way`.
  /// @param others Empty = all other nodes. @param end May be `for_good`.
  void begin(const std::set<node_index>& nodes, const std::set<node_index>& others, bool one_way,
             job_time end);

  /// A random half of the nodes is cut off one by one, and let back in another order.
  /// @param lasts Until all are back.
  void swizzle(const std::vector<node_index>& nodes, job_time lasts);

private:
  void clog(node_index node, job_time lasts);

  simulated_network& network_;
  timed_events& events_;
  fault_draws& draws_;
  lost_nodes& lost_;
  fault_log& log_;
};

} // namespace troupe
