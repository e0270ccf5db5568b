// SPDX-License-Identifier: Apache-2.0
// One thread reads, and one watches that it does.
#include "actors/net/reading_threads.hpp"

#include "actors/caf_compat.hpp"
#include "messages/assert.hpp"

#include <caf/actor_system.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <chrono>
#include <limits>

namespace troupe {

namespace {

// Between two looks of the watcher: so seldom that it costs nothing, and so often that nobody
// notices the time in which nobody reads.
constexpr std::chrono::milliseconds look_period{1};

} // namespace

void reading_threads::woken_actor::exec_later(caf::resumable* actor) {
  if (actor_ == nullptr)
    actor_ = actor;
  else
    system().scheduler().enqueue(actor);
}

reading_threads::reading_threads(caf::actor_system& system, boost::asio::io_context& io)
  : system_(system), io_(io), woken_(&system) {}

void reading_threads::start() {
  for (auto is_reader : {true, false})
    threads_[is_reader ? 0 : 1] = std::thread{[this, reads = is_reader]() mutable {
      leave_unlogged();
      for (; !is_over_; reads = !reads)
        reads ? read() : watch();
    }};
}

void reading_threads::join() {
  for (auto& thread : threads_) {
    TROUPE_ASSERT(thread.get_id() != std::this_thread::get_id());
    thread.join();
  }
}

// Until the watcher has taken over, or there is nothing left to do.
void reading_threads::read() {
  while (io_.run_one() > 0) {
    auto* actor = woken_.take();
    if (actor == nullptr) continue;
    auto with_actor = ++turn_;
    rouse_watcher();
    resume(actor);
    if (!turn_.compare_exchange_strong(with_actor, with_actor + 1)) return;
  }
  is_over_ = true;
  rouse_watcher();
}

// Until the reader is with one actor for two looks, or there is nothing left to do.
void reading_threads::watch() {
  auto seen = turn_.load();
  while (!is_over_) {
    std::this_thread::sleep_for(look_period);
    auto turn = turn_.load();
    auto is_with_actor = turn % 2 == 1;
    if (turn == seen && is_with_actor && turn_.compare_exchange_strong(turn, turn + 1)) return;
    if (turn == seen && !is_with_actor) sleep_until_roused(seen);
    seen = turn;
  }
}

void reading_threads::rouse_watcher() {
  if (!is_asleep_) return;
  std::lock_guard guard{mutex_};
  is_asleep_ = false;
  roused_.notify_one();
}

// Either it sees here that something has come, or whom that comes to sees that it is asleep.
void reading_threads::sleep_until_roused(uint64_t seen) {
  std::unique_lock lock{mutex_};
  is_asleep_ = true;
  if (turn_ != seen || is_over_) is_asleep_ = false;
  roused_.wait(lock, [this] { return !is_asleep_; });
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
