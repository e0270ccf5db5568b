// SPDX-License-Identifier: Apache-2.0
// Two threads take turns at one io_context.
#include "actors/net/reading_threads.hpp"

#include "actors/caf_compat.hpp"
#include "messages/assert.hpp"

#include <caf/actor_system.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <limits>

namespace troupe {

void reading_threads::woken_actor::exec_later(caf::resumable* actor) {
  if (actor_ == nullptr)
    actor_ = actor;
  else
    system().scheduler().enqueue(actor);
}

reading_threads::reading_threads(caf::actor_system& system, boost::asio::io_context& io)
  : system_(system), io_(io), woken_(&system) {}

void reading_threads::start() {
  for (auto& thread : threads_)
    thread = std::thread{[this] { turn(); }};
}

void reading_threads::join() {
  for (auto& thread : threads_) {
    TROUPE_ASSERT(thread.get_id() != std::this_thread::get_id());
    thread.join();
  }
}

void reading_threads::turn() {
  leave_unlogged();
  auto wait_for_baton = [this](std::unique_lock<std::mutex>& baton) {
    ++waiting_;
    baton.lock();
    --waiting_;
  };
  std::unique_lock baton{baton_, std::defer_lock};
  wait_for_baton(baton);
  while (io_.run_one() > 0) {
    auto* actor = woken_.take();
    if (actor == nullptr) continue;
    if (waiting_ == 0) { // the other is busy with an actor
      system_.scheduler().enqueue(actor);
      continue;
    }
    baton.unlock();
    resume(actor);
    wait_for_baton(baton);
  }
}

// As CAF's workers do. Whom the actor wakes is the scheduler's: the unit passes on, and lives as
// long as the actors, which may remember it.
void reading_threads::resume(caf::resumable* actor) {
  auto* unit = system_.dummy_execution_unit();
  switch (actor->resume(unit, std::numeric_limits<size_t>::max())) {
  case caf::resumable::resume_later:
    return system_.scheduler().enqueue(actor);
  case caf::resumable::done:
  case caf::resumable::awaiting_message:
    return intrusive_ptr_release(actor);
  case caf::resumable::shutdown_execution_unit:
    return;
  }
}

} // namespace troupe
