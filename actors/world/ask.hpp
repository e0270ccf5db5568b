// SPDX-License-Identifier: Apache-2.0
// A request from outside the actors, which lets the world turn until the answer is there.
#pragma once

#include "actors/interfaces/activity_messages.hpp"
#include "actors/interfaces/caf_compat.hpp"
#include "actors/world/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace troupe {

/// How a wait is given up: once `stop` is asked to stop, the asker tells the other side so.
struct cancellation {
  std::stop_token stop{};
  std::function<void(caf::event_based_actor* asker)> tell{};
};

/// Sends `message` to `to` and waits for the answer; a cancellation is to make one come.
/// Thread: the one that made the world, and not from inside an actor.
/// Errors: what the other side answers; unavailable, if it is gone; invalid_argument for an empty
/// handle; user_code, if its handler throws; stalled, if no answer can come.
template <class Reply, class Handle, class Message>
[[nodiscard]] expected<Reply> ask(world& world, Handle to, Message message,
                                  const cancellation& cancelled = {}) {
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
  auto asker
    = world.system().spawn([to = std::move(to), message = std::move(message), talk,
                            tell = cancelled.tell](caf::event_based_actor* self) -> caf::behavior {
        self
          ->request(to, caf::infinite, message) // the receiver answers, or is gone and CAF does
          .then(
            [self, talk](const Reply& reply) {
              self->quit();
              talk->settle(reply);
            },
            [self, talk](const caf::error& reason) {
              self->quit();
              talk->settle(tl::unexpected<error>(from_caf(reason)));
            });
        return {[self, tell](give_up) { tell(self); }};
      });
  auto cancel = [&] { world.call([asker] { caf::anon_send(asker, give_up{}); }); };
  std::stop_callback on_stop{cancelled.stop, cancel};
  if (auto turned = world.run_until(over); !turned) {
    if (cancelled.tell) { // what comes later is not to go to an asker that waits no more
      cancel();
      static_cast<void>(world.run_until(over));
    }
    caf::anon_send_exit(asker, caf::exit_reason::kill);
    return tl::unexpected<error>(turned.error());
  }
  return std::move(*talk->answer);
}

} // namespace troupe
