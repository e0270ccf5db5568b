// SPDX-License-Identifier: Apache-2.0
// A request from outside the actors: ask, let the world turn until the answer is there.
#pragma once

#include "actors/caf_compat.hpp"
#include "actors/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include <future>
#include <optional>
#include <utility>

namespace troupe {

/// Sends `message` to `to` and waits for the answer.
/// Thread: the one that made the world, and not from inside an actor.
/// Errors: what the other side answers; unavailable, if it is gone; stalled, if no answer can come.
template <class Reply, class Handle, class Message>
[[nodiscard]] expected<Reply> ask(world& world, Handle to, Message message) {
  std::promise<void> answered;
  std::optional<expected<Reply>> answer;
  auto done = answered.get_future();
  auto settle = [&answered, &answer](expected<Reply> result) {
    answer = std::move(result);
    answered.set_value();
  };
  world.system().spawn(
    [to = std::move(to), message = std::move(message), settle](caf::event_based_actor* self) {
      self
        ->request(to, caf::infinite, message) // the receiver answers, or is gone and CAF does
        .then(
          [settle](const Reply& reply) { settle(reply); },
          [settle](const caf::error& reason) { settle(tl::unexpected<error>(from_caf(reason))); });
    });
  if (auto turned = world.run_until(done); !turned) return tl::unexpected<error>(turned.error());
  return std::move(*answer);
}

} // namespace troupe
