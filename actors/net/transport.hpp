// SPDX-License-Identifier: Apache-2.0
// A transport carries parcels from node to node.
#pragma once

#include "actors/net/parcel.hpp"

namespace troupe {

/// Nodes do not care what is between them: a simulated network, or sockets. Whatever it is has
/// `node::deliver` called where a parcel arrives, and `node::lose` where a peer is found to be
/// gone.
///
/// Parcels from one node to another arrive in the order in which they were sent, each once, or are
/// lost together with one of the two nodes. A transport that promises less says so.
class transport {
public:
  virtual ~transport() = default;

  /// Takes a parcel to the node `what.to.at`. Thread: any.
  virtual void send(const node_address& from, parcel message) = 0;
};

} // namespace troupe
