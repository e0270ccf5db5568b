// SPDX-License-Identifier: Apache-2.0
// The programs of several processes, in one virtual world.
#pragma once

#include "actors/world/world.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// A process has a program besides its actors: it makes a strategy, trains, and waits
/// in `world::run_until` meanwhile. A virtual world has one thread, which could wait for the
/// program of one process only. So each program has a thread and a world of its own, but only one
/// of all threads runs at a time: a program goes on until it waits; then the first one goes on that
/// waits no more; and only if there is none, the virtual world makes its next event. So the course
/// is that of the seed, as ever.
///
/// A program's world is the virtual one, with its own `run_until`; and what it introduces there
/// goes by the program's name, too, as processes give their actors the same names.
///
/// Thread: the one that made the virtual world, or a program that goes on.
class virtual_programs {
public:
  /// A program, called with its world. Throws nothing.
  using program_body = std::function<void(world&)>;

  /// @param shared A virtual world. Outlives this.
  explicit virtual_programs(world& shared);

  /// Has programs that have not ended do so: as `play`, for those that were stopped, too.
  ~virtual_programs();

  virtual_programs(const virtual_programs&) = delete;
  virtual_programs& operator=(const virtual_programs&) = delete;

  /// @param name Its process, unique: "worker:2". @param body Begins with `play`.
  void add(std::string name, program_body body);

  /// A program goes on no more, as that of a process that is killed. It is up to the caller to take
  /// away what of the process others can see.
  /// @param name A program that was added; nothing happens if there is none.
  void stop(const std::string& name);

  /// Lets programs and world go on until all programs have ended, but for those that were stopped.
  /// If no event is left, the first of the programs is told that its wait has stalled.
  void play();

private:
  struct program;
  class program_world;

  void play(bool with_stopped);
  /// The first program that has not ended; with `is_ready`, one that waits no more.
  [[nodiscard]] program* first(bool with_stopped, bool is_ready) const;
  void let_go_on(program& program);
  expected<void> wait(program& program, std::future<void>& done, job_time timeout);

  world& shared_;
  std::vector<std::unique_ptr<program>> programs_; ///< In the order in which they go on.
};

} // namespace troupe
