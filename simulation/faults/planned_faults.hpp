// SPDX-License-Identifier: Apache-2.0
// The faults that were planned with their times.
#pragma once

#include "simulation/faults/fault.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/faults/lost_nodes.hpp"
#include "simulation/faults/network_partitions.hpp"
#include "simulation/faults/node_freezes.hpp"
#include "simulation/network/simulated_network.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Begins each planned fault at its time, and ends it.
class planned_faults {
public:
  /// All outlive this, but for the faults. @param faults Valid.
  planned_faults(simulated_network& network, const std::vector<fault>& faults,
                 node_freezes& freezes, network_partitions& partitions, lost_nodes& lost,
                 fault_log& log);

  /// Takes in every message that arrives: some faults wait for one.
  void on_delivery(const delivery& delivery);

  /// How the gradient that a replica makes now is corrupt; asking forgets it.
  [[nodiscard]] corruption next_corruption(uint32_t replica);

private:
  void plan(const fault& fault);
  void begin(const fault& fault);
  void cut_off(const fault& fault);
  void slow_down(const fault& fault);
  void put_at_risk(const fault& fault);
  void skew(const fault& fault);
  [[nodiscard]] std::vector<node_index> nodes_of(const std::vector<std::string>& names) const;

  simulated_network& network_;
  const simulated_nodes& nodes_;
  timed_events& events_;
  node_freezes& freezes_;
  network_partitions& partitions_;
  lost_nodes& lost_;
  fault_log& log_;
  std::map<node_index, job_time> armed_; ///< Crash with their next token, and how long for.
  std::map<uint32_t, corruption> corrupt_;
  std::map<node_index, std::vector<double>> factors_; ///< Faults that slow a node down now.
  std::map<node_index, std::vector<double>> rates_;   ///< Faults that hurry its clock now.
};

} // namespace troupe
