// SPDX-License-Identifier: Apache-2.0
// The nodes that are given up by others because they are silent.
#pragma once

#include "simulation/network/blocked_links.hpp"
#include "simulation/network/node_clocks.hpp"
#include "simulation/network/silence_watch.hpp"
#include "simulation/network/simulated_nodes.hpp"
#include "simulation/network/simulated_transport.hpp"
#include "simulation/network/timed_events.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// As over sockets, a node that is silent for longer than a timeout is given up by those that talk
/// to it, for good: what was held back between them is lost, and it hears of that as soon as it
/// hears anything.
class silent_peers {
public:
  /// All outlive this. @param timeout As in `silence_watch`.
  silent_peers(simulated_nodes& nodes, timed_events& events, const blocked_links& blocked,
               const node_clocks& clocks, simulated_transport& transport, job_time timeout);

  /// Told when a node has given up another that was silent. May be empty.
  std::function<void(node_index by, node_index lost)> on_give_up;

  /// Something is in the way of a node, or is not any more.
  void look_at_links_of(node_index node);

  /// Something is in the way of any nodes, or is not any more.
  void look_at_all_links();

  /// Tells nodes that they were given up, if messages of the others reach them again.
  void tell_given_up();

  /// The node has ended.
  void forget(node_index node) { silence_.forget(node); }

private:
  /// A node that has given up another, which has not heard of it yet.
  struct parting {
    node_address by;
    node_address lost;
  };

  void look_at_link(node_index from, node_index to);
  void give_up_silent();
  void give_up_on(node_index by, node_index lost);

  simulated_nodes& nodes_;
  timed_events& events_;
  const blocked_links& blocked_;
  const node_clocks& clocks_;
  simulated_transport& transport_;
  job_time timeout_;
  silence_watch silence_;
  std::vector<parting> partings_;
};

} // namespace troupe
