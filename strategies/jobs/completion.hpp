// SPDX-License-Identifier: Apache-2.0
// An outcome that actors tell, and that the program waits for.
#pragma once

#include "actors/world/world.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace troupe {

/// The outcome of what actors do. Copies share it; the first outcome that is told counts.
template <class T>
class completion {
public:
  /// Tells the outcome. Thread: any.
  void operator()(expected<T> outcome) const {
    if (shared_->is_told.exchange(true)) return;
    shared_->outcome = std::move(outcome);
    shared_->is_known.set_value();
  }

  /// Waits for the outcome. Thread: as `world::run_until`.
  /// Errors: those of the outcome; as `world::run_until`.
  [[nodiscard]] expected<T> wait(world& world) const {
    if (auto turned = world.run_until(shared_->known); !turned)
      return tl::unexpected<error>(turned.error());
    return *shared_->outcome;
  }

  /// Whether the outcome is known within `timeout`. Thread: as `world::run_until`.
  [[nodiscard]] bool comes(world& world, job_time timeout) const {
    return world.run_until(shared_->known, timeout).has_value();
  }

  /// The outcome, if it is known and no error. Thread: any.
  [[nodiscard]] std::optional<T> peek() const {
    auto is_known = shared_->known.wait_for(job_time{0}) == std::future_status::ready;
    return is_known && *shared_->outcome ? std::optional<T>{**shared_->outcome} : std::nullopt;
  }

private:
  struct content {
    std::atomic<bool> is_told = false;
    std::optional<expected<T>> outcome;
    std::promise<void> is_known;
    std::future<void> known = is_known.get_future();
  };

  std::shared_ptr<content> shared_ = std::make_shared<content>();
};

/// Ends an actor at once, and waits until it is gone, 30 s at most.
/// @param handle Null: there is none.
template <class Handle>
void kill_and_await(world& world, const Handle& handle) {
  constexpr job_time timeout = std::chrono::seconds{30};
  if (!handle) return;
  completion<void> gone;
  caf::actor_cast<caf::abstract_actor*>(handle)->attach_functor([gone] { gone({}); });
  caf::anon_send_exit(handle, caf::exit_reason::kill);
  static_cast<void>(gone.comes(world, timeout));
}

} // namespace troupe
