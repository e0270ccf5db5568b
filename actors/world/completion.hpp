// SPDX-License-Identifier: Apache-2.0
// An outcome that actors tell, and that the program waits for: the end of an actor, for one.
#pragma once

#include "actors/world/world.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
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
  /// @returns False if it was told before.
  bool operator()(expected<T> outcome) const {
    if (shared_->is_told.exchange(true)) return false;
    shared_->outcome = std::move(outcome);
    shared_->is_known.set_value();
    return true;
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

  /// Ready once the outcome is known, for waits of other kinds.
  [[nodiscard]] std::future<void>& known() const { return shared_->known; }

  /// Whether the outcome is known by now. Thread: any.
  [[nodiscard]] bool has_come() const {
    return shared_->known.wait_for(job_time{0}) == std::future_status::ready;
  }

  /// The outcome, if it is known and no error. Thread: any.
  [[nodiscard]] std::optional<T> peek() const {
    return has_come() && *shared_->outcome ? std::optional<T>{**shared_->outcome} : std::nullopt;
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

/// Told when an actor has ended, at once if it has already.
template <class Handle>
[[nodiscard]] completion<void> end_of(const Handle& actor) {
  completion<void> ended;
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor([ended] { ended({}); });
  return ended;
}

/// Has an actor exit, and waits until it is gone, for `timeout` at most.
/// @param actor Null: there is none.
/// @param reason `kill`: it exits at once, without handling the messages that it has.
template <class Handle>
void end_actor(world& world, const Handle& actor, caf::exit_reason reason = caf::exit_reason::kill,
               job_time timeout = std::chrono::seconds{30}) {
  if (!actor) return;
  auto ended = end_of(actor);
  caf::anon_send_exit(actor, reason);
  static_cast<void>(ended.comes(world, timeout));
}

} // namespace troupe
