// SPDX-License-Identifier: Apache-2.0
// Where the actors of a simulated job stand.
#pragma once

#include "actors/net/placement.hpp"
#include "simulation/network/simulated_nodes.hpp"
#include "simulation/network/timed_events.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// The placement of one program that plays all nodes: every actor is spawned in it, stands at the
/// node that its name says, and is known at others by a handle of theirs.
class simulated_placement final : public placement {
public:
  /// @param nodes It and `events` outlive this. @param meets_at_roll_call As in `network_options`.
  /// @param end_node Ends a node that others of the job have given up; does nothing if it is down.
  simulated_placement(simulated_nodes& nodes, timed_events& events, bool meets_at_roll_call,
                      std::function<void(node_index node)> end_node);

  /// Where there is a roll call: told when it is there.
  std::function<void()> on_roll_call;

  [[nodiscard]] uint32_t owner_places() const override { return nodes_.owner_count(); }

  /// Where there is a roll call: the nodes that are waited for at it, which are all that are there
  /// or will be.
  [[nodiscard]] std::map<uint32_t, std::string> others() const override;

  /// Replicas whose nodes are up enter where there is no roll call; others are spawned later.
  [[nodiscard]] expected<bool> enter(const std::string& name, double load) override;

  [[nodiscard]] uint32_t where(const std::string& name) const override {
    return nodes_.node_of(name);
  }

  /// The node where an actor stands; nothing if it is gone with its node.
  [[nodiscard]] std::optional<node_index> node_of(caf::actor_id actor) const;

  /// The node that is lost ends with all its actors.
  void part_with(uint32_t lost, uint32_t lost_by) override;

  void place(const std::string& name, const caf::strong_actor_ptr& actor) override;
  void stand_beside(const std::string& neighbour, const caf::strong_actor_ptr& actor) override;
  [[nodiscard]] expected<caf::strong_actor_ptr> see(const std::string& viewer,
                                                    const std::string& name) override;
  [[nodiscard]] expected<actor_search> search(const std::string& viewer,
                                              const std::string& name) override;

  /// Ends all actors at a node.
  void end_actors(node_index node);

  /// Forgets all actors, which have ended.
  void clear();

  // ---- returns ----

  void on_return(std::function<void(uint32_t replica)> come_back) override {
    come_back_ = std::move(come_back);
  }

  void on_owners_return(std::function<void(uint32_t process)> come_back) override {
    owners_come_back_ = std::move(come_back);
  }

  /// Tells the function given to `on_return`, once there is one, that the replica is to be
  /// spawned.
  void bring_back(uint32_t replica);

  /// Tells the function given to `on_owners_return`, if there is one, that what a parameter server
  /// held is to be spawned.
  void bring_back_owners(node_index node);

  /// Whether there is such a function.
  [[nodiscard]] bool takes_owners_back() const { return owners_come_back_ != nullptr; }

private:
  simulated_nodes& nodes_;
  timed_events& events_;
  bool meets_at_roll_call_;
  std::function<void(node_index)> end_node_;
  std::vector<std::vector<caf::strong_actor_ptr>> actors_;         ///< By node.
  std::unordered_map<caf::actor_id, node_index> stands_at_;        ///< The same, the other way.
  std::unordered_map<std::string, caf::strong_actor_ptr> goes_by_; ///< By name, but for replicas.
  std::function<void(uint32_t)> come_back_;
  std::function<void(uint32_t)> owners_come_back_;
};

} // namespace troupe
