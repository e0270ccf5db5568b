// SPDX-License-Identifier: Apache-2.0
// The nodes of a simulated job: their names, and their lives.
#pragma once

#include "actors/net/node.hpp"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Node 0 is the chief's; then come those of the parameter servers, then those of the replicas.
/// Each has lives, one after the other, and knows which nodes have something to lose when its life
/// ends.
class simulated_nodes {
public:
  /// A life that is over.
  struct ended_life {
    node_address address;
    std::set<node_index> known_to;
  };

  /// All nodes are down. @param owners Parameter servers; at least 1.
  simulated_nodes(caf::actor_system& system, uint32_t owners, uint32_t replicas);

  // ---- names ----

  [[nodiscard]] node_index chief_node() const { return 0; }

  [[nodiscard]] node_index owner_node(uint32_t owner) const { return 1 + owner; }

  [[nodiscard]] node_index replica_node(uint32_t replica) const { return 1 + owners_ + replica; }

  [[nodiscard]] uint32_t owner_count() const { return owners_; }

  [[nodiscard]] node_index node_count() const { return static_cast<node_index>(lives_.size()); }

  [[nodiscard]] bool is_replica(node_index node) const { return node > owners_; }

  /// The node's replica; the number of replicas if it has none.
  [[nodiscard]] uint32_t replica_at(node_index node) const;

  /// The replica's node, if there is one at an end of a message's way; else its receiver's.
  [[nodiscard]] node_index replica_end(node_index from, node_index to) const {
    return is_replica(from) ? from : to;
  }

  /// "replica 3", "ps 0", "chief".
  [[nodiscard]] std::string name_of(node_index node) const;

  /// The node where the actor of that name stands: variables are dealt out to their nodes by the
  /// number at the end of their names.
  [[nodiscard]] node_index node_of(const std::string& actor) const;

  // ---- lives ----

  [[nodiscard]] bool is_up(node_index node) const { return lives_[node].here != nullptr; }

  [[nodiscard]] bool is_gone_for_good(node_index node) const { return lives_[node].is_gone; }

  /// The address in its present life; while it is down, in its last one. @pre It has begun a life.
  [[nodiscard]] node_address address_of(node_index node) const {
    return {node, lives_[node].begun - 1};
  }

  [[nodiscard]] bool is_alive(const node_address& address) const {
    return is_up(address.node) && address == address_of(address.node);
  }

  /// The node in its present life; null while it is down.
  [[nodiscard]] const std::shared_ptr<node>& node_at(node_index node) const {
    return lives_[node].here;
  }

  /// The node is up from now on. @param carrier Outlives it.
  void begin_life(node_index node, transport& carrier);

  /// The node is down from now on. @param is_final Whether it never begins another life.
  ended_life end_life(node_index node, bool is_final = false);

  // ---- peers ----

  /// Nodes that have something to lose when this one is gone.
  [[nodiscard]] const std::set<node_index>& known_to(node_index node) const {
    return lives_[node].known_to;
  }

  /// The node `to` has something to lose from now on when this one is gone.
  void show(node_index node, node_index to) { lives_[node].known_to.insert(to); }

  /// The opposite of `show`. @returns Whether there was something to lose.
  bool hide(node_index node, node_index from) { return lives_[node].known_to.erase(from) > 0; }

private:
  struct life {
    std::shared_ptr<node> here;
    uint32_t begun = 0;   ///< Lives so far.
    bool is_gone = false; ///< It never restarts.
    std::set<node_index> known_to;
  };

  caf::actor_system& system_;
  uint32_t owners_;
  std::vector<life> lives_; ///< The present or last one of each node.
};

} // namespace troupe
