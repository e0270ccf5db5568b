// SPDX-License-Identifier: Apache-2.0
// The actors that have messages and wait for a thread, in the order in which they got them.
#pragma once

#include "actors/policies/spin.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

namespace caf {
class resumable;
} // namespace caf

namespace troupe {

/// One queue for all threads that run actors, which wakes few of them. To wake a thread costs some
/// microseconds, and it comes tens of microseconds later: in that time the thread that woke it
/// could have run several of these actors, most of which have next to nothing to do.
/// So at most one thread at a time *searches*: it is woken for a job, or is awake without one.
/// While one searches, jobs are queued and none is woken; when it has found one and more are left,
/// it has the next one search. A job that takes long therefore holds up no other.
///
/// A searching thread that finds nothing looks for a while before it sleeps, as `spin_policy` has
/// it. That matters where messages come from outside: from a device, from computing threads.
///
/// Source: so do the schedulers of Go and of Tokio.
///
/// Thread: any.
class job_queue {
public:
  /// @param spin As of a `spin_policy`; 0: threads without a job sleep at once.
  explicit job_queue(std::chrono::microseconds spin) : spin_(spin) {}

  void put(caf::resumable* job);

  /// The first one; waits until there is one.
  [[nodiscard]] caf::resumable* take();

  /// The first one; null, if there is none.
  [[nodiscard]] caf::resumable* try_take();

private:
  caf::resumable* take_first();
  bool call_a_thread();
  void look();

  std::mutex mutex_;
  std::condition_variable called_; ///< A sleeping thread is to search.
  std::deque<caf::resumable*> jobs_;
  std::atomic<size_t> count_ = 0; ///< Number of jobs, for the thread that looks.
  size_t sleeping_ = 0;           ///< Threads that sleep.
  size_t calls_ = 0;              ///< Calls that no sleeping thread has heard yet.
  size_t searching_ = 0;          ///< Threads that search, or are called to.
  spin_policy spin_;              ///< Only the thread that looks uses it.
  bool is_looking_ = false;
  std::atomic<bool> is_away_ = false; ///< The thread that looks has offered its processor.
};

} // namespace troupe
