// SPDX-License-Identifier: Apache-2.0
// The node of a process that has no others to talk to.
#pragma once

#include "actors/net/membership.hpp"
#include "actors/net/node.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe {

/// Programs look for actors in the same way whether their job has one process or many. This is the
/// one of a job that has no other.
class lone_node final : public membership, public transport {
public:
  lone_node(caf::actor_system& system, std::string name)
    : here_(node::make(system, *this, {0, 1}, std::move(name))) {
    std::promise<expected<node_address>> arrived;
    arrived.set_value(here_->address());
    arrival_ = arrived.get_future().share();
  }

  lone_node(const lone_node&) = delete;
  lone_node& operator=(const lone_node&) = delete;

  ~lone_node() override { here_->disconnect(); }

  [[nodiscard]] const std::shared_ptr<node>& here() const override { return here_; }

  [[nodiscard]] std::string name_of(node_index /*peer*/) const override { return here_->name(); }

  [[nodiscard]] std::shared_future<expected<node_address>> arrival(node_index /*peer*/) override {
    return arrival_;
  }

  /// There is no node that a parcel could be for.
  void send(const node_address& /*from*/, parcel /*message*/) override {}

private:
  std::shared_ptr<node> here_;
  std::shared_future<expected<node_address>> arrival_;
};

} // namespace troupe
