// SPDX-License-Identifier: Apache-2.0
// The end of an actor's node, as watchers of the actor see it.
#pragma once

#include "actors/interfaces/caf_compat.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/message_id.hpp>
#include <caf/system_messages.hpp>

#include <utility>

namespace troupe::test {

/// Ends an actor as its proxy ends when its node is lost.
template <class Handle>
void lose_node(const Handle& of, const error& why) {
  caf::exit_msg end{caf::actor_addr{}, to_caf(why)};
  caf::actor_cast<caf::actor>(of)->enqueue(nullptr, caf::make_message_id(),
                                           caf::make_message(std::move(end)), nullptr);
}

} // namespace troupe::test
