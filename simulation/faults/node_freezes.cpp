// SPDX-License-Identifier: Apache-2.0
// Freezes and thaws of nodes, and computations that wait for them.
#include "simulation/faults/node_freezes.hpp"

#include <algorithm>

namespace troupe {

node_freezes::node_freezes(simulated_network& network, uint32_t replicas, fault_draws& draws,
                           lost_nodes& lost, fault_log& log)
  : network_(network), nodes_(network.nodes()), events_(network.events()), draws_(draws),
    lost_(lost), log_(log), freezes_(replicas) {}

void node_freezes::add(node_index node, window freeze) {
  if (nodes_.is_replica(node)) {
    auto& windows = freezes_[nodes_.replica_at(node)].windows;
    windows.insert(std::ranges::upper_bound(windows, freeze.begin, {}, &window::begin), freeze);
  }
  events_.at(freeze.begin, [this, node, end = freeze.end] {
    log_.tell("freeze", nodes_.name_of(node));
    lost_.silence(node, end);
    network_.freeze(node);
  });
  if (freeze.end == for_good) return;
  events_.at(freeze.end, [this, node] {
    log_.tell("thaw", nodes_.name_of(node));
    network_.thaw(node);
  });
}

void node_freezes::draw(uint32_t replica, job_time until) {
  const auto& rates = draws_.rates();
  if (rates.freeze_mean == job_time{0}) return;
  auto& drawn = freezes_[replica].drawn_until;
  while (drawn <= until) {
    window next{drawn + draws_.exponential("freeze", replica, rates.freeze_mean), job_time{0}};
    next.end = drawn
      = next.begin + draws_.exponential("thaw", replica, rates.thaw_mean) + job_time{1};
    add(nodes_.replica_node(replica), next);
    events_.at(next.end, [this, replica, end = next.end] { draw(replica, end); });
  }
}

// Work stops while its node is frozen, and goes on when it has thawed.
job_time node_freezes::stretched(uint32_t replica, job_time time) {
  auto begin = events_.now();
  auto end = begin + time;
  auto thawed = begin;
  draw(replica, end);
  const auto& windows = freezes_[replica].windows;
  for (size_t i = 0; i < windows.size(); ++i) { // drawing adds later ones
    auto freeze = windows[i];
    if (freeze.end <= thawed || freeze.begin >= end) continue;
    if (freeze.end == for_good) return for_good / 4; // it never ends
    end += freeze.end - std::max(freeze.begin, thawed);
    thawed = freeze.end;
    draw(replica, end);
  }
  return end - begin;
}

} // namespace troupe
