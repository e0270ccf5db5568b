// SPDX-License-Identifier: Apache-2.0
// The nodes that end by a fault, and their returns.
#pragma once

#include "simulation/faults/fault_draws.hpp"
#include "simulation/faults/fault_log.hpp"
#include "simulation/network/simulated_network.hpp"

#include <map>
#include <optional>

namespace troupe {

/// A node is lost if it crashes, or if it is given up because it was silent. A replica comes back,
/// and so does an owner if variables have mirrors. The loss of another node ends the job, which may
/// begin again.
class lost_nodes {
public:
  /// All outlive this. It hears of the nodes that the network gives up.
  lost_nodes(simulated_network& network, fault_draws& draws, fault_log& log);

  /// The node ends now, if it is up. @param lasts How long it is away; 0 = for good.
  /// @param event The name of the crash in the log.
  void crash(node_index node, job_time lasts, const char* event);

  /// The node is frozen or cut off until then: if it is given up, it is not back before.
  void silence(node_index node, job_time until);

  /// When the job can begin again, if the chief's or an owner's node is gone; forgets it.
  [[nodiscard]] std::optional<job_time> restart_time();

private:
  void on_give_up(node_index by, node_index lost);
  void come_back(node_index node);
  [[nodiscard]] bool takes_back(node_index node) const;

  simulated_network& network_;
  const simulated_nodes& nodes_;
  timed_events& events_;
  fault_draws& draws_;
  fault_log& log_;
  std::map<node_index, job_time> silent_until_; ///< Frozen or cut off; of some in the past.
  std::optional<job_time> job_restarts_;
  bool never_restarts_ = false; ///< A process is gone for good that no job goes on without.
};

} // namespace troupe
