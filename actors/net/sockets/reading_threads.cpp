// SPDX-License-Identifier: Apache-2.0
// One thread reads, and one watches that it does.
#include "actors/net/sockets/reading_threads.hpp"

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/sockets/read_watch.hpp"
#include "messages/errors/assert.hpp"

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <chrono>
#include <deque>
#include <limits>

namespace troupe {

using std::chrono::steady_clock;

namespace {

// Between two looks of the watcher: so seldom that it costs nothing, and so often that the time in
// which no thread reads does not matter.
constexpr std::chrono::milliseconds watcher_period{1};

// After so many handlers sockets have had a turn, and the io_context, however much comes elsewhere.
constexpr uint32_t turns = 4;

// A reader of this process looks, and does not sleep.
std::atomic_flag looks_somewhere;

} // namespace

/// An actor that was woken where a thread reads, for this thread to resume next. One at a time:
/// the others are the scheduler's, and so are all that are woken elsewhere.
class reading_threads::woken_actor final : public caf::execution_unit {
public:
  using caf::execution_unit::execution_unit;

  /// Actors remember the unit that resumed them, for longer than there is a network: so this stays.
  [[nodiscard]] static woken_actor& of_next_thread(caf::actor_system& system) {
    static std::mutex mutex;
    static std::deque<woken_actor> all;
    std::lock_guard guard{mutex};
    return all.emplace_back(&system);
  }

  void exec_later(caf::resumable* actor) override {
    caf::resumable* nobody = nullptr;
    if (!is_of_caller() || !next_.compare_exchange_strong(nobody, actor))
      system().scheduler().enqueue(actor);
    // The watcher may have taken over between the two, before there was an actor to hand over.
    else if (!is_of_caller())
      hand_over();
  }

  /// From now on the caller reads.
  void begin() { thread_ = std::this_thread::get_id(); }

  /// Another thread reads on, or none.
  void end() {
    thread_ = std::thread::id{};
    hand_over();
  }

  /// The actor, if any; it is the caller's.
  [[nodiscard]] caf::resumable* take() { return next_.exchange(nullptr); }

  /// Resumes an actor, as CAF's workers do, and the actors that are woken by that.
  void resume_all(caf::resumable* actor) {
    for (; actor != nullptr; actor = take()) {
      switch (actor->resume(this, std::numeric_limits<size_t>::max())) {
      case caf::resumable::resume_later:
        system().scheduler().enqueue(actor);
        break;
      case caf::resumable::done:
      case caf::resumable::awaiting_message:
        intrusive_ptr_release(actor);
        break;
      case caf::resumable::shutdown_execution_unit:
        break;
      }
    }
  }

private:
  [[nodiscard]] bool is_of_caller() const { return thread_ == std::this_thread::get_id(); }

  void hand_over() {
    if (auto* actor = take()) system().scheduler().enqueue(actor);
  }

  std::atomic<std::thread::id> thread_;
  std::atomic<caf::resumable*> next_ = nullptr;
};

reading_threads::reading_threads(caf::actor_system& system, boost::asio::io_context& io,
                                 read_watch& reads, std::chrono::microseconds spin)
  : system_(system), io_(io), reads_(reads), spin_(spin) {}

caf::execution_unit* reading_threads::host(uint64_t message_bytes) const {
  // A segment of a collective, and what is said of it.
  constexpr uint64_t short_bytes_max = 640 * 1024;
  return message_bytes <= short_bytes_max ? woken_ : nullptr;
}

void reading_threads::start() {
  auto& one = woken_actor::of_next_thread(system_);
  auto& other = woken_actor::of_next_thread(system_);
  for (auto is_first : {true, false})
    threads_[is_first ? 0 : 1] = std::thread{
      [this, is_first, &own = is_first ? one : other, &peers = is_first ? other : one] {
        leave_unlogged();
        for (auto reads = is_first; !is_over_; reads = !reads)
          reads ? read(own) : watch(peers);
      }};
}

void reading_threads::join() {
  for (auto& thread : threads_) {
    TROUPE_ASSERT(thread.get_id() != std::this_thread::get_id());
    thread.join();
  }
}

// Until the watcher has taken over, or there is nothing left to do.
void reading_threads::read(woken_actor& woken) {
  woken.begin();
  woken_ = &woken;
  while (handle_next() > 0) {
    auto* actor = woken.take();
    if (actor == nullptr) continue;
    if (!is_watched_) { // the other thread is still with an actor of its own
      system_.scheduler().enqueue(actor);
      continue;
    }
    auto with_actors = ++turn_;
    rouse_watcher();
    woken.resume_all(actor);
    if (!turn_.compare_exchange_strong(with_actors, with_actors + 1)) return;
  }
  woken.end();
  is_over_ = true;
  rouse_watcher();
}

// Calls one handler: the next that there is. @returns How many that were; 0: there will be none.
size_t reading_threads::handle_next() {
  auto turn = ++handled_ % turns;
  if (turn == 0 && io_.poll_one() > 0) return 1;
  if (turn == turns / 2 && reads_.complete_socket()) return 1;
  if (reads_.complete_one() || look() || !reads_.may_sleep()) return 1;
  auto began = steady_clock::now();
  auto handled = io_.run_one();
  spin_.has_slept(steady_clock::now() - began);
  return handled;
}

// Calls a handler if there is one soon.
bool reading_threads::look() {
  if (!spin_.begins(steady_clock::now()) || looks_somewhere.test_and_set()) return false;
  auto has_found = false;
  do {
    has_found = reads_.complete_one() || reads_.complete_socket() || io_.poll_one() > 0;
    if (!has_found) std::this_thread::yield();
  } while (!has_found && spin_.goes_on(steady_clock::now()));
  looks_somewhere.clear();
  if (has_found) spin_.has_found();
  return has_found;
}

// Until the reader is with actors for two looks, or there is nothing left to do.
void reading_threads::watch(woken_actor& readers) {
  is_watched_ = true;
  auto seen = turn_.load();
  while (!is_over_) {
    std::this_thread::sleep_for(watcher_period);
    auto turn = turn_.load();
    auto is_with_actors = turn % 2 == 1;
    if (turn == seen && is_with_actors) {
      is_watched_ = false; // before the reader can come back, and watch
      if (turn_.compare_exchange_strong(turn, turn + 1)) return readers.end();
      is_watched_ = true;
    }
    if (turn == seen && !is_with_actors) sleep_until_roused(seen);
    seen = turn;
  }
}

void reading_threads::rouse_watcher() {
  if (!is_asleep_) return;
  std::lock_guard guard{mutex_};
  is_asleep_ = false;
  roused_.notify_one();
}

// Either the watcher sees here that something has come, or the reader sees it asleep.
void reading_threads::sleep_until_roused(uint64_t seen) {
  std::unique_lock lock{mutex_};
  is_asleep_ = true;
  if (turn_ != seen || is_over_) is_asleep_ = false;
  roused_.wait(lock, [this] { return !is_asleep_; });
}

} // namespace troupe
