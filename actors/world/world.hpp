// SPDX-License-Identifier: Apache-2.0
// The world that a job runs in: its scheduler, its clock and where its computing happens.
#pragma once

#include "actors/observing/observatory.hpp"
#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>

namespace caf {
class actor;
class actor_system;
class message;
} // namespace caf

namespace troupe {

/// The settings of a world.
struct world_options {
  uint64_t seed = 0; ///< Seed of all named random streams and of the virtual world's interleaving.
  unsigned threads = 0; ///< Threads that compute; 0 = one per core. The virtual world has one.
  bool observed = true; ///< Whether actors can be looked at; costs memory and time for each.
};

/// The same actors must train a model in real time and be simulated under a thousand faulty
/// schedules. So nothing below the world knows which one it is in: no actor reads a real clock or
/// starts a thread; it asks its world.
///
/// | world        | scheduler               | clock   | order of events at equal times |
/// |--------------|-------------------------|---------|--------------------------------|
/// | threads      | CAF's, by a `job_queue` | real    | as it happens                  |
/// | virtual_time | one thread of our own   | virtual | drawn from the seed            |
///
/// In the virtual world the seed ranks all actors anew at each moment, by their names, and the
/// first in rank that has a message goes first: so the order does not depend on what was before,
/// and a job that goes on from a checkpoint finds the order of the one that was not interrupted.
///
/// Every actor must have ended before its world is destroyed.
class world {
public:
  /// Real threads, real time, one machine. Errors: throws `failure` with resource if not all of its
  /// threads can be made.
  [[nodiscard]] static world threads(world_options options = {});

  /// One thread, virtual time: a seed is an interleaving, and runs again exactly.
  [[nodiscard]] static world virtual_time(world_options options = {});

  world(world&&) noexcept;
  world& operator=(world&&) noexcept;

  /// Waits for submitted work that is still under way, but not for ever for code that never
  /// returns: see `endless_work_timeout`. Such code holds copies, not references to locals, since
  /// all that it refers to has to outlive the process's `main`.
  ~world();

  [[nodiscard]] caf::actor_system& system();
  [[nodiscard]] uint64_t seed() const;

  /// Time since the world began. Thread: any.
  [[nodiscard]] job_time now() const;

  /// Lets the clock go on from `time`, where a saved job left it; it never goes back. To be called
  /// while no actor waits for time to pass.
  void set_clock(job_time time);

  /// Tells the name by which an actor is known: to people, and to the order of events.
  /// @param actor Its CAF id. @param name Unique: "replica 3", "owner weights".
  /// Thread: any.
  void introduce(uint64_t actor, const std::string& name);

  /// All actors of this world, to be looked at. It lives as long as the world. Thread: any.
  [[nodiscard]] const troupe::observatory& observatory() const;

  /// Runs `work` off the actors' threads: in the threads world on the computing threads, so that
  /// messages are answered while gradients are computed; in the virtual world at once, in no time.
  /// Thread: any. @pre `work` throws nothing. Errors: throws `failure` with resource if there is no
  /// thread yet to run it and none can be made; then it does not run.
  void submit(std::function<void()> work);

  /// Whether work is done when `submit` returns.
  [[nodiscard]] bool computes_in_place() const;

  /// As `submit`, for work that waits for the disk more than it computes; one piece after the
  /// other.
  void submit_io(std::function<void()> work);

  /// Runs `action` where actors may be spoken to, now or a moment later: how a signal handler's
  /// thread reaches the actors of a world that has but one thread. Thread: any.
  void call(std::function<void()> action);

  /// Sends a message once everything else that is due at this moment is done; in the threads
  /// world, where no two things happen at one moment, at once. Thread: any.
  void send_last(const caf::actor& receiver, caf::message message);

  /// Events so far: messages that actors handled, and moments that time went on to. Only the
  /// virtual world counts; 0 in the threads world. Thread: as `run_until`.
  [[nodiscard]] uint64_t event_count() const;

  /// Lets the world turn until `done` is ready.
  /// @param timeout On the world's clock, from now.
  /// Errors: deadline_exceeded after that; stalled, if nothing is left that could ever make it
  /// ready (virtual world only). Thread: the one that made the world, and not from inside an actor.
  [[nodiscard]] expected<void> run_until(std::future<void>& done, job_time timeout = for_ever);

  /// Lets the next thing happen that `run_until` would wait for, for callers that turn the world.
  /// @returns False if nothing is left; always in the threads world, which turns by itself.
  /// Thread: as `run_until`.
  [[nodiscard]] bool make_event();

  /// The timeout of a caller that has other means to end a wait.
  static constexpr job_time for_ever{std::numeric_limits<job_time::rep>::max()};

  /// A kind of world. `threads` and `virtual_time` make the two that jobs run in; code that shares
  /// one of them between several programs gives each a kind of its own.
  class implementation;

  explicit world(std::unique_ptr<implementation> implementation);

private:
  std::unique_ptr<implementation> implementation_;
};

/// One kind of world; the members mean the same as those of `world`.
class world::implementation {
public:
  virtual ~implementation() = default;
  virtual caf::actor_system& system() = 0;
  [[nodiscard]] virtual job_time now() const = 0;
  virtual void set_clock(job_time time) = 0;

  virtual void introduce(uint64_t, const std::string&) {}

  [[nodiscard]] virtual uint64_t event_count() const { return 0; }

  [[nodiscard]] virtual bool computes_in_place() const { return false; }

  virtual void submit(std::function<void()> work) = 0;
  virtual void submit_io(std::function<void()> work) = 0;
  virtual void call(std::function<void()> action) = 0;
  virtual void send_last(const caf::actor& receiver, caf::message message) = 0;
  virtual expected<void> run_until(std::future<void>& done, job_time timeout) = 0;

  virtual bool make_event() { return false; }

  uint64_t seed = 0;
  troupe::observatory observatory{[this] { return now(); }};
};

/// Makes the implementation of the threads world.
[[nodiscard]] std::unique_ptr<world::implementation>
make_threads_world(const world_options& options);

/// Makes the implementation of the virtual world.
[[nodiscard]] std::unique_ptr<world::implementation>
make_virtual_world(const world_options& options);

} // namespace troupe
