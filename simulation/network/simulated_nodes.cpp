// SPDX-License-Identifier: Apache-2.0
// Names of nodes, and where a name of an actor leads.
#include "simulation/network/simulated_nodes.hpp"

#include "messages/errors/assert.hpp"

#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

// The number at the end of a name; 0 if there is none.
uint32_t trailing_number(std::string_view name) {
  auto begin = name.find_last_not_of("0123456789");
  auto digits = name.substr(begin == std::string_view::npos ? 0 : begin + 1);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

} // namespace

simulated_nodes::simulated_nodes(caf::actor_system& system, uint32_t owners, uint32_t replicas)
  : system_(system), owners_(owners), lives_(1 + owners + replicas) {
  TROUPE_ASSERT(owners > 0);
}

uint32_t simulated_nodes::replica_at(node_index node) const {
  return (is_replica(node) ? node : node_count()) - replica_node(0);
}

std::string simulated_nodes::name_of(node_index node) const {
  if (node == chief_node()) return "chief";
  if (!is_replica(node)) return fmt::format("ps {}", node - 1);
  return fmt::format("replica {}", node - replica_node(0));
}

node_index simulated_nodes::node_of(const std::string& actor) const {
  for (auto prefix : {"replica ", "communicator ", "task reporter "})
    if (actor.starts_with(prefix)) return replica_node(trailing_number(actor));
  if (actor.starts_with("owner ") || actor.starts_with("accumulator "))
    return owner_node(trailing_number(actor) % owners_);
  if (actor.starts_with("mirror ")) return owner_node((trailing_number(actor) + 1) % owners_);
  return chief_node();
}

void simulated_nodes::begin_life(node_index node, transport& carrier) {
  auto& life = lives_[node];
  life.here = node::make(system_, carrier, {node, life.begun++}, name_of(node));
}

simulated_nodes::ended_life simulated_nodes::end_life(node_index node, bool is_final) {
  auto& life = lives_[node];
  life.here = nullptr;
  life.is_gone = life.is_gone || is_final;
  return {address_of(node), std::exchange(life.known_to, {})};
}

} // namespace troupe
