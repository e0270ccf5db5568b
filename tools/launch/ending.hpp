// SPDX-License-Identifier: Apache-2.0
// The end of a launched job: signals to its tasks, and the time that they have.
#pragma once

#include "actors/world/phases.hpp"
#include "tools/launch/outcome.hpp"
#include "tools/launch/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstdint>

namespace troupe {

/// A task that is asked to end may not do so. So it is killed after the grace time, and every wait
/// has an end. The job goes through phases:
///
/// | phase   | its tasks                             | after the grace time | next            |
/// |---------|---------------------------------------|----------------------|-----------------|
/// | running | run, and are started again one by one | -                    | serving, ending |
/// | serving | are servers that no other task needs  | they are told to end | ending          |
/// | ending  | were sent a signal; none starts again | they are killed      | killing         |
/// | killing | were sent SIGKILL                     | -                    | -               |
/// | over    | have ended for good, with all output  | -                    | -               |
///
/// All phases but the last also lead to `running`, when all tasks are started again, and to `over`.
/// The time of `serving` begins anew with the end of each further task.
/// Thread: that of the context.
class launch_ending {
public:
  /// @param outcome, tasks Outlive this object.
  launch_ending(boost::asio::io_context& context, launch_outcome& outcome, task_group& tasks);
  launch_ending(const launch_ending&) = delete;
  launch_ending& operator=(const launch_ending&) = delete;

  /// Sends a signal to all tasks. @pre !has_begun() and !is_over()
  void begin(int number);

  /// Only servers are left: the end begins after the grace time, unless it has begun.
  void begin_later();

  /// The job was asked to end once more: kills all tasks, but for the echo of a signal.
  /// @pre has_begun()
  void insist();

  /// All tasks are started again.
  void on_restart();

  /// All tasks are over.
  void finish();

  /// Whether the tasks were sent a signal, and some are not over.
  [[nodiscard]] bool has_begun() const {
    return phase_ == phase::ending || phase_ == phase::killing;
  }

  [[nodiscard]] bool is_over() const { return phase_ == phase::over; }

  /// For the output of a task that ends now.
  [[nodiscard]] output_limit limit() const;

private:
  enum class phase : uint8_t { running, serving, ending, killing, over };

  static constexpr std::array transitions{
    leads(phase::running, phase::running, phase::serving, phase::ending, phase::over),
    leads(phase::serving, phase::running, phase::serving, phase::ending, phase::over),
    leads(phase::ending, phase::running, phase::killing, phase::over),
    leads(phase::killing, phase::running, phase::over),
  };

  void wait_for_grace();
  void on_grace_over();
  void kill();

  boost::asio::steady_timer grace_end_;
  launch_outcome& outcome_;
  task_group& tasks_;
  phase_in<phase, transitions> phase_{phase::running};
  std::chrono::steady_clock::time_point began_; // when `ending` was entered
};

} // namespace troupe
