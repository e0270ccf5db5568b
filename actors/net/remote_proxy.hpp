// SPDX-License-Identifier: Apache-2.0
// An actor of another node as an ordinary CAF handle.
#pragma once

#include "actors/net/address.hpp"

#include <caf/actor_proxy.hpp>

#include <memory>

namespace troupe {

class node;

/// Actors must not know whether those they talk to are near or far. A proxy stands for one that is
/// far: what is sent to it, requests, answers and exit messages alike, goes to its node, and an
/// actor that monitors it or is linked to it is told when the actor, or the whole node, is gone.
///
/// Thread: any, like every actor's handle.
class remote_proxy final : public caf::actor_proxy {
public:
  /// @param home The node that the proxy is at.
  remote_proxy(caf::actor_config& config, std::weak_ptr<troupe::node> home,
               actor_address stands_for)
    : caf::actor_proxy(config), home_(std::move(home)), stands_for_(stands_for) {}

  /// The actor that is meant.
  [[nodiscard]] const actor_address& stands_for() const { return stands_for_; }

  [[nodiscard]] const char* name() const override { return "remote_proxy"; }

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* host) override;

  /// The actor is gone: tells its monitors and the actors that are linked to it.
  void kill_proxy(caf::execution_unit* host, caf::error reason) override;

private:
  std::weak_ptr<troupe::node> home_;
  actor_address stands_for_;
};

/// The actor of another node that a handle is of; null, if it is this node's own. @pre Not null.
[[nodiscard]] const actor_address* original_of(const caf::strong_actor_ptr& actor);

} // namespace troupe
