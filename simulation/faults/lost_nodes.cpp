// SPDX-License-Identifier: Apache-2.0
// Crashes, and the nodes that are given up because of other faults.
#include "simulation/faults/lost_nodes.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

lost_nodes::lost_nodes(simulated_network& network, fault_draws& draws, fault_log& log)
  : network_(network), nodes_(network.nodes()), events_(network.events()), draws_(draws),
    log_(log) {
  network_.silence().on_give_up = [this](node_index by, node_index lost) { on_give_up(by, lost); };
}

void lost_nodes::crash(node_index node, job_time lasts, const char* event) {
  if (!nodes_.is_up(node)) return;
  log_.tell(event, nodes_.name_of(node));
  auto is_replica = nodes_.is_replica(node);
  network_.crash(node, is_replica && lasts == job_time{0});
  auto is_back = lasts > job_time{0} || takes_back(node);
  if (!is_replica && is_back) job_restarts_ = events_.now() + lasts;
  if (!is_replica && !is_back) never_restarts_ = true;
  if (lasts > job_time{0} && (is_replica || takes_back(node)))
    events_.at(events_.now() + lasts, [this, node] { come_back(node); });
}

// Where owners are replicated, a job goes on without one of them. The loss of a second one ends the
// job, which begins again at once.
bool lost_nodes::takes_back(node_index node) const {
  return node != nodes_.chief_node() && network_.placement().takes_owners_back();
}

void lost_nodes::come_back(node_index node) {
  log_.tell("restart", nodes_.name_of(node));
  network_.restart(node);
}

void lost_nodes::silence(node_index node, job_time until) {
  auto& end = silent_until_[node];
  end = std::max(end, until);
}

// A node that has lost the chief, or is lost by it, has no part in the job any more; nor has a
// replica that has lost an owner without a mirror, or is lost by it.
void lost_nodes::on_give_up(node_index by, node_index lost) {
  auto chief = nodes_.chief_node();
  auto [other, node] = std::minmax(by, lost);
  auto is_replica = nodes_.is_replica(node);
  auto loses_owner
    = is_replica && !nodes_.is_replica(other) && !network_.placement().takes_owners_back();
  if (other != chief && !loses_owner) return;
  auto until = std::max(events_.now(), silent_until_[node]);
  if (other != chief) until = std::max(until, silent_until_[other]);
  log_.tell("given up", nodes_.name_of(node));
  if (!is_replica) {
    until = std::max(until, silent_until_[chief]);
    if (until < for_good) job_restarts_ = until;
    return;
  }
  auto absence = draws_.absence(nodes_.replica_at(node));
  // Where no time of return is drawn, a replica is back as soon as it hears that it is given up.
  auto stays_down
    = until == for_good || (absence == job_time{0} && draws_.rates().return_mean > job_time{0});
  network_.crash(node, stays_down);
  if (!stays_down) events_.at(until + absence, [this, node] { come_back(node); });
}

std::optional<job_time> lost_nodes::restart_time() {
  auto time = std::exchange(job_restarts_, std::nullopt);
  return never_restarts_ ? std::nullopt : time;
}

} // namespace troupe
