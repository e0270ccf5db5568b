// SPDX-License-Identifier: Apache-2.0
// Which of a job's nodes are there.
#pragma once

#include "actors/net/address.hpp"
#include "messages/errors/errc.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>

namespace troupe {

class node;

/// Processes are started one by one, in any order, and each has to be reached before it can be
/// asked for anything. A membership knows the job's list of nodes, and which have come; what
/// carries messages implements it. It does not tell of lost nodes: `node::lose` does.
///
/// Thread: any.
class membership {
public:
  virtual ~membership() = default;

  /// The node of this process.
  [[nodiscard]] virtual const std::shared_ptr<node>& here() const = 0;

  /// A node as people know it: "worker:2 (10.0.0.3:2222)".
  [[nodiscard]] virtual std::string name_of(node_index peer) const = 0;

  /// The address of a node: ready at once for this one, for others when they have come. It stays as
  /// it is for a node that never comes: its caller needs a deadline.
  /// Errors: why the node and this one cannot speak to each other.
  [[nodiscard]] virtual std::shared_future<expected<node_address>> arrival(node_index peer) = 0;

  /// A function that gives the node's `arrival` as it is when it is called; may be kept for longer
  /// than the membership.
  [[nodiscard]] virtual std::function<std::shared_future<expected<node_address>>()>
  arrivals(node_index peer) {
    return [always = arrival(peer)] { return always; };
  }

  /// Gives a node up that is there, as if it had fallen silent; it is told why. Without effect if
  /// it is gone already.
  virtual void give_up(node_index /*peer*/, const std::string& /*why*/) {}

  /// Why a node has not come yet, as far as that is known: dialing it fails, or a process that says
  /// it is that node is refused. Else empty.
  [[nodiscard]] virtual std::string trouble_with(node_index /*peer*/) const { return {}; }
};

} // namespace troupe
