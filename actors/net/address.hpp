// SPDX-License-Identifier: Apache-2.0
// The addresses of nodes and of their actors.
#pragma once

#include <compare>
#include <cstdint>

namespace troupe {

/// Position in the job's list of nodes, which is the same everywhere.
using node_index = uint32_t;

/// One life of a node. A node that was restarted is another node: what was sent to its former life
/// must not reach it.
struct node_address {
  node_index node = 0;
  uint32_t incarnation = 0; ///< Restarts so far.

  auto operator<=>(const node_address&) const = default;
};

/// An actor, as other nodes know it.
struct actor_address {
  node_address at;
  uint64_t actor = 0; ///< Its CAF id there; 0: no actor.

  auto operator<=>(const actor_address&) const = default;
};

} // namespace troupe
