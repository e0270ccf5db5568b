// SPDX-License-Identifier: Apache-2.0
// A request from outside the actors: ask, let the world turn until the answer is there.
#pragma once

#include "actors/caf_compat.hpp"
#include "actors/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

/// Sends `message` to `to` and waits for the answer.
/// Thread: the one that made the world, and not from inside an actor.
/// Errors: what the other side answers; unavailable, if it is gone; stalled, if no answer can come.
template <class Reply, class Handle, class Message>
[[nodiscard]] expected<Reply> ask(world& world, Handle to, Message message) {
  struct conversation {
    std::promise<void> over;
    std::optional<expected<Reply>> answer;

    void settle(expected<Reply> result) {
      answer = std::move(result);
      over.set_value();
    }
  };

  // Shared: the actor may still be at its last words when this function returns.
  auto talk = std::make_shared<conversation>();
  auto over = talk->over.get_future();
  auto asker = world.system().spawn(
    [to = std::move(to), message = std::move(message), talk](caf::event_based_actor* self) {
      self
        ->request(to, caf::infinite, message) // the receiver answers, or is gone and CAF does
        .then([talk](const Reply& reply) { talk->settle(reply); },
              [talk](const caf::error& reason) {
                talk->settle(tl::unexpected<error>(from_caf(reason)));
              });
    });
  if (auto turned = world.run_until(over); !turned) {
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    return tl::unexpected<error>(turned.error());
  }
  return std::move(*talk->answer);
}

} // namespace troupe
