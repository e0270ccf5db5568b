// SPDX-License-Identifier: Apache-2.0
// The links that no message passes now.
#pragma once

#include "actors/net/address.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace troupe {

/// A cut between nodes: what crosses it waits until it is healed, as a connection sends again what
/// was not acknowledged. Both predicates are asked; an empty one is true for every node.
struct cut {
  std::function<bool(node_index)> from;
  std::function<bool(node_index)> to;
};

/// Frozen nodes and cuts are in the way of messages. Several may be at once.
class blocked_links {
public:
  explicit blocked_links(node_index node_count) : freezes_(node_count) {}

  /// Nothing enters or leaves the node any more, until it was thawed as often.
  void freeze(node_index node) { ++freezes_[node]; }

  /// @pre It is frozen. @returns False if it still is, because it was frozen several times.
  bool thaw(node_index node);

  /// @returns The cut's number, for `heal`.
  uint64_t sever(cut between);

  /// @returns False if there is no cut of that number any more.
  bool heal(uint64_t number) { return cuts_.erase(number) > 0; }

  [[nodiscard]] bool is_frozen(node_index node) const { return freezes_[node] > 0; }

  [[nodiscard]] bool is_cut(node_index from, node_index to) const;

  /// Whether messages of one that have left it have to wait before they enter the other.
  [[nodiscard]] bool is_blocked(node_index from, node_index to) const {
    return is_frozen(to) || is_cut(from, to);
  }

  /// Whether messages pass between them now, in both directions.
  [[nodiscard]] bool are_connected(node_index one, node_index other) const {
    return !is_blocked(one, other) && !is_blocked(other, one);
  }

private:
  std::vector<uint32_t> freezes_; ///< By node: how often it was frozen and not thawed yet.
  std::map<uint64_t, cut> cuts_;
  uint64_t cut_count_ = 0;
};

} // namespace troupe
