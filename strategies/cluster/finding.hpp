// SPDX-License-Identifier: Apache-2.0
// The search for an actor of another process.
#pragma once

#include "actors/net/finder.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/converted.hpp"

#include <caf/actor_cast.hpp>

#include <utility>

namespace troupe {

/// A process may need an actor before the actor's own process has come. A finding is waited for by
/// a step function, which holds no thread meanwhile, or by a thread that runs no actor. The
/// deadline counts from the beginning of the wait.
///
/// Thread: that of the waiter. Ends no later than its server.
template <class Handle>
class finding {
public:
  finding(world& world, finder_actor finder, find_actor search)
    : world_(&world), finder_(std::move(finder)), search_(std::move(search)) {}

  /// For a coroutine: what it awaits.
  /// @param asker The coroutine's `replica_context` or `activity`.
  /// @returns An awaitable of `expected<Handle>`. Errors: as `finder`.
  template <class Asker>
  [[nodiscard]] auto by(Asker& asker) const {
    return converted{asker.template request<found_actor>(finder_, search_),
                     [](const expected<found_actor>& found) { return found.map(handle_of); }};
  }

  /// For a thread that runs no actor: waits.
  /// Errors: as `finder` and `ask`.
  [[nodiscard]] expected<Handle> wait() const {
    return ask<found_actor>(*world_, finder_, search_).map(handle_of);
  }

private:
  static Handle handle_of(const found_actor& found) { return caf::actor_cast<Handle>(found.actor); }

  world* world_;
  finder_actor finder_;
  find_actor search_;
};

} // namespace troupe
