// SPDX-License-Identifier: Apache-2.0
// The network of processes that are played by threads: sockets, or parcels that are handed over.
#pragma once

#include "actors/net/cluster_layout.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "messages/errors/failure.hpp"
#include "tests/actors/net/direct_network.hpp"
#include "tests/actors/net/free_addresses.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// The names of a layout's nodes.
[[nodiscard]] inline std::vector<std::string> node_names(const cluster_layout& layout) {
  std::vector<std::string> result;
  for (node_index node = 0; node < layout.node_count(); ++node)
    result.push_back(layout.name_of(node));
  return result;
}

/// Thread: any.
class played_network {
public:
  played_network(const cluster_layout& layout, bool has_sockets)
    : direct(node_names(layout)), layout_(layout) {
    if (has_sockets) addresses_ = free_addresses(layout.node_count());
  }

  /// A process enters, until what it is given is gone.
  [[nodiscard]] std::unique_ptr<membership> join(caf::actor_system& system, node_index node) {
    if (addresses_.empty()) return std::make_unique<direct_membership>(direct, system, node);
    socket_network_options options{.job = "test", .self = node};
    for (node_index i = 0; i < layout_.node_count(); ++i)
      options.nodes.push_back({layout_.name_of(i), addresses_[i]});
    options.talk
      = [layout = layout_](node_index one, node_index other) { return layout.talk(one, other); };
    return value_or_throw(socket_network::open(system, options));
  }

  direct_network direct; ///< Hands parcels over, if there are no sockets.

private:
  cluster_layout layout_;
  std::vector<std::string> addresses_; ///< None if there are no sockets.
};

} // namespace troupe::test
