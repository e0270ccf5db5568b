// SPDX-License-Identifier: Apache-2.0
// Actors and their nodes, and handles from node to node.
#include "simulation/network/simulated_placement.hpp"

#include <caf/actor.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <fmt/format.h>

namespace troupe {

simulated_placement::simulated_placement(simulated_nodes& nodes, timed_events& events,
                                         bool meets_at_roll_call,
                                         std::function<void(node_index node)> end_node)
  : nodes_(nodes), events_(events), meets_at_roll_call_(meets_at_roll_call),
    end_node_(std::move(end_node)), actors_(nodes.node_count()) {}

void simulated_placement::place(const std::string& name, const caf::strong_actor_ptr& actor) {
  stand_beside(name, actor);
  if (!name.starts_with("replica ")) goes_by_[name] = actor; // a replica is never looked for
  if (name == "roll call" && on_roll_call) on_roll_call();
}

void simulated_placement::stand_beside(const std::string& neighbour,
                                       const caf::strong_actor_ptr& actor) {
  auto node = nodes_.node_of(neighbour);
  stands_at_[actor->id()] = node;
  actors_[node].push_back(actor);
}

std::optional<node_index> simulated_placement::node_of(caf::actor_id actor) const {
  auto found = stands_at_.find(actor);
  if (found == stands_at_.end()) return std::nullopt;
  return found->second;
}

std::map<uint32_t, std::string> simulated_placement::others() const {
  std::map<uint32_t, std::string> names;
  for (node_index node = 1; meets_at_roll_call_ && node < nodes_.node_count(); ++node)
    if (!nodes_.is_gone_for_good(node)) names.emplace(node, nodes_.name_of(node));
  return names;
}

expected<bool> simulated_placement::enter(const std::string& name, double /*load*/) {
  return !name.starts_with("replica ")
         || (!meets_at_roll_call_ && nodes_.is_up(nodes_.node_of(name)));
}

expected<caf::strong_actor_ptr> simulated_placement::see(const std::string& viewer,
                                                         const std::string& name) {
  auto found = goes_by_.find(name);
  if (found == goes_by_.end())
    return fail(errc::not_found, fmt::format("no node was placed as '{}'", name));
  const auto& actor = found->second;
  auto at = node_of(actor->id());
  if (!at) return actor; // gone with its node: it answers no more
  auto from = nodes_.node_of(viewer);
  if (from == *at || !nodes_.is_up(from) || !nodes_.is_up(*at)) return actor;
  nodes_.show(*at, from);
  return nodes_.node_at(from)->handle_of(nodes_.node_at(*at)->show(actor, nodes_.address_of(from)));
}

expected<actor_search> simulated_placement::search(const std::string& viewer,
                                                   const std::string& name) {
  return see(viewer, name).map([&](const caf::strong_actor_ptr&) {
    return actor_search{
      [this, viewer, name](const std::function<void(const caf::strong_actor_ptr&)>& found) {
        if (auto actor = see(viewer, name)) found(*actor);
        return true;
      }};
  });
}

void simulated_placement::part_with(uint32_t lost, uint32_t /*lost_by*/) {
  events_.at(events_.now(), [this, lost] { end_node_(lost); });
}

void simulated_placement::end_actors(node_index node) {
  for (auto& actor : std::exchange(actors_[node], {})) {
    stands_at_.erase(actor->id());
    caf::anon_send_exit(caf::actor_cast<caf::actor>(actor), caf::exit_reason::kill);
  }
}

void simulated_placement::clear() {
  for (auto& actors : actors_)
    actors.clear();
  stands_at_.clear();
  goes_by_.clear();
}

// The chief's process may still be starting the job.
void simulated_placement::bring_back(uint32_t replica) {
  constexpr auto look_period = std::chrono::milliseconds{1};
  if (come_back_) return come_back_(replica);
  auto life = nodes_.address_of(nodes_.replica_node(replica));
  events_.at(events_.now() + look_period, [this, replica, life] {
    if (nodes_.is_alive(life)) bring_back(replica);
  });
}

void simulated_placement::bring_back_owners(node_index node) {
  if (owners_come_back_) owners_come_back_(node);
}

} // namespace troupe
