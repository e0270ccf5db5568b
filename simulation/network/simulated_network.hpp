// SPDX-License-Identifier: Apache-2.0
// The network of a virtual world: messages between nodes take time, and may go wrong.
#pragma once

#include "actors/world/world.hpp"
#include "simulation/network/blocked_links.hpp"
#include "simulation/network/fault_injector.hpp"
#include "simulation/network/network_options.hpp"
#include "simulation/network/node_clocks.hpp"
#include "simulation/network/silent_peers.hpp"
#include "simulation/network/simulated_nodes.hpp"
#include "simulation/network/simulated_placement.hpp"
#include "simulation/network/simulated_transport.hpp"
#include "simulation/network/timed_events.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// A simulated network, and the nodes at it. Each part answers one question; the network itself
/// carries out the faults that several of them take part in.
///
/// Thread: that of the virtual world. Must not outlive the world, and must outlive the job.
class simulated_network {
public:
  simulated_network(world& world, uint32_t replicas, network_options options);

  simulated_network(const simulated_network&) = delete;
  simulated_network& operator=(const simulated_network&) = delete;

  // ---- parts ----

  [[nodiscard]] const network_options& options() const { return options_; }

  /// Which nodes are there, and which of them are up?
  [[nodiscard]] const simulated_nodes& nodes() const { return nodes_; }

  /// When does something happen, outside of actors?
  [[nodiscard]] timed_events& events() { return events_; }

  /// Which links are blocked?
  [[nodiscard]] const blocked_links& blocked() const { return blocked_; }

  /// Which messages are lost, doubled or late on purpose?
  [[nodiscard]] fault_injector& injector() { return injector_; }

  /// How does a message come from node to node, and what becomes of it?
  [[nodiscard]] simulated_transport& transport() { return transport_; }

  /// Which actor stands where?
  [[nodiscard]] simulated_placement& placement() { return placement_; }

  /// Which time is it at each node?
  [[nodiscard]] node_clocks& clocks() { return clocks_; }

  /// Which nodes are given up, because they are silent?
  [[nodiscard]] silent_peers& silence() { return silence_; }

  // ---- faults ----

  /// The node ends with all its actors. The others know it after the detection time.
  /// @param is_final Whether it never restarts.
  void crash(node_index node, bool is_final = false);

  /// It begins a new life, without actors. Where there is a roll call, `on_restart` is called to
  /// start its process; else its replica, or what it held, is back at once.
  void restart(node_index node);

  /// Where there is a roll call: told when a node has begun a new life.
  std::function<void(node_index)> on_restart;

  /// Every node begins a new life without actors, but for replicas' nodes that are down: whatever
  /// was on its way is gone.
  void reset();

  /// Nothing enters or leaves the node any more, until it thaws: then everything does.
  void freeze(node_index node);
  void thaw(node_index node);

  /// @returns The cut's number, for `heal`.
  uint64_t sever(cut between);
  void heal(uint64_t number);

private:
  void begin_life(node_index node);
  void release_held();

  network_options options_;
  simulated_nodes nodes_;
  timed_events events_;
  blocked_links blocked_;
  fault_injector injector_;
  simulated_transport transport_;
  simulated_placement placement_;
  node_clocks clocks_;
  silent_peers silence_;
};

} // namespace troupe
