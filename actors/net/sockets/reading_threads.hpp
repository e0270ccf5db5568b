// SPDX-License-Identifier: Apache-2.0
// The threads that read what comes, and the actors that it wakes.
#pragma once

#include "actors/policies/spin.hpp"

#include <boost/asio/io_context.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace caf {
class actor_system;
class execution_unit;
} // namespace caf

namespace troupe {

class read_watch;

/// The thread that has read a message could resume its actor at once, which saves the change to
/// another thread, most of what a short request takes. But no actor may keep a node from hearing
/// its peers. So there are two threads: one reads, turning the io_context, and resumes the actors
/// that are woken by short messages, and those that these wake, one after the other; the other
/// watches. If this takes longer than two looks of the watcher, they change places: the watcher
/// reads on, has the scheduler resume the next actor, and the former reader watches when its actor
/// has returned; until then the scheduler has all actors that are woken. The watcher sleeps while
/// nothing comes. The reader looks for a while before it does, as its `spin_policy` has it; in a
/// process with several networks, one reader at a time.
class reading_threads {
public:
  /// @param system, io, reads Outlive it. @param reads The reads of the io_context's streams
  /// that the reader looks for itself. @param spin As of a `spin_policy`.
  reading_threads(caf::actor_system& system, boost::asio::io_context& io, read_watch& reads,
                  std::chrono::microseconds spin);

  reading_threads(const reading_threads&) = delete;
  reading_threads& operator=(const reading_threads&) = delete;

  void start();

  [[nodiscard]] bool have_started() const { return threads_[0].joinable(); }

  /// Waits until the io_context has nothing left to do, and for an actor that is being resumed.
  /// @pre The caller is no handler, nor an actor that was woken by one.
  void join();

  /// The unit that resumes an actor which a handler wakes with a message of so many bytes; null:
  /// the scheduler, since the time of a long message hides a change of threads. Thread: handlers.
  [[nodiscard]] caf::execution_unit* host(uint64_t message_bytes) const;

private:
  class woken_actor;

  void read(woken_actor& woken);
  size_t handle_next();
  bool look();
  void watch(woken_actor& readers);
  void rouse_watcher();
  void sleep_until_roused(uint64_t seen);

  caf::actor_system& system_;
  boost::asio::io_context& io_;
  read_watch& reads_;
  woken_actor* woken_ = nullptr; ///< Set and used by the reader alone, as is what follows.
  spin_policy spin_;
  uint32_t handled_ = 0;
  /// Goes up when the reader turns to an actor, and again when a thread reads on: odd in between.
  std::atomic<uint64_t> turn_ = 0;
  std::atomic<bool> is_watched_ = false; ///< A thread is there to read on.
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> is_asleep_ = false; ///< The watcher, until it is roused.
  std::mutex mutex_;                    ///< Guards the watcher's sleep.
  std::condition_variable roused_;
  std::array<std::thread, 2> threads_;
};

} // namespace troupe
