// SPDX-License-Identifier: Apache-2.0
// Faults of nodes and links.
#include "simulation/network/simulated_network.hpp"

#include "actors/world/virtual_coordinator.hpp"

#include <caf/actor_system.hpp>

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

virtual_clock& virtual_clock_of(world& world) {
  return static_cast<virtual_coordinator&>(world.system().scheduler()).clock();
}

} // namespace

simulated_network::simulated_network(world& world, uint32_t replicas, network_options options)
  : options_(std::move(options)), nodes_(world.system(), options_.owners, replicas), events_(world),
    blocked_(nodes_.node_count()), injector_(nodes_, options_.seed),
    transport_(options_, nodes_, events_, blocked_, injector_),
    placement_(nodes_, events_, options_.meets_at_roll_call,
               [this](node_index node) { crash(node); }),
    clocks_(virtual_clock_of(world), placement_, nodes_.node_count()),
    silence_(nodes_, events_, blocked_, clocks_, transport_, options_.silence_timeout) {
  for (node_index node = 0; node < nodes_.node_count(); ++node)
    begin_life(node);
}

void simulated_network::begin_life(node_index node) {
  nodes_.begin_life(node, transport_);
  transport_.end_service(node);
}

void simulated_network::crash(node_index node, bool is_final) {
  if (!nodes_.is_up(node)) return;
  auto gone = nodes_.end_life(node, is_final);
  placement_.end_actors(node);
  transport_.lose_transfers(node);
  silence_.forget(node);
  error reason{errc::unavailable, fmt::format("node '{}' is gone", nodes_.name_of(node))};
  events_.at(events_.now() + options_.detection,
             [this, gone = std::move(gone), reason = std::move(reason)] {
               for (auto peer : gone.known_to)
                 if (const auto& here = nodes_.node_at(peer)) here->lose(gone.address, reason);
             });
}

void simulated_network::restart(node_index node) {
  if (nodes_.is_up(node)) return;
  begin_life(node);
  if (options_.meets_at_roll_call)
    on_restart(node);
  else if (nodes_.is_replica(node))
    placement_.bring_back(nodes_.replica_at(node));
  else
    placement_.bring_back_owners(node);
}

void simulated_network::reset() {
  for (node_index node = 0; node < nodes_.node_count(); ++node) {
    silence_.forget(node);
    if (!nodes_.is_up(node) && nodes_.is_replica(node)) continue;
    nodes_.end_life(node);
    begin_life(node);
  }
  placement_.clear();
  release_held(); // none of its senders lives any more
}

void simulated_network::freeze(node_index node) {
  blocked_.freeze(node);
  silence_.look_at_links_of(node);
}

void simulated_network::thaw(node_index node) {
  if (!blocked_.thaw(node)) return;
  silence_.look_at_links_of(node);
  release_held();
}

uint64_t simulated_network::sever(cut between) {
  auto number = blocked_.sever(std::move(between));
  silence_.look_at_all_links();
  return number;
}

void simulated_network::heal(uint64_t number) {
  if (!blocked_.heal(number)) return;
  silence_.look_at_all_links();
  release_held();
}

void simulated_network::release_held() {
  silence_.tell_given_up();
  transport_.release_held();
}

} // namespace troupe
