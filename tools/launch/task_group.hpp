// SPDX-License-Identifier: Apache-2.0
// The processes of a launcher's tasks, from the first start to the last byte of the last one.
#pragma once

#include "actors/world/phases.hpp"
#include "tools/launch/command_line.hpp"
#include "tools/launch/running_task.hpp"
#include "tools/launch/tasks.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Starts the tasks of a launcher, and knows when all are over. Tasks are named by their positions.
/// Each goes through phases:
///
/// | phase   | its process                                   | next                 |
/// |---------|-----------------------------------------------|----------------------|
/// | waiting | is not there: the task is to be started       | running, ended, over |
/// | running | runs                                          | ended                |
/// | ended   | has ended; its output may go on for some time | waiting, over        |
/// | over    | is reaped, and its output was read to the end | waiting              |
///
/// A task goes from `waiting` to `ended` or `over` if the job ends before its start, from `ended`
/// to `waiting` if it is started again alone, and from `over` to `waiting` if all are.
/// Thread: that of the context.
class task_group {
public:
  using duration = std::chrono::milliseconds;

  /// The launcher's reactions.
  struct events {
    std::function<void(size_t task)> on_due; ///< The pause before the task's start is over.
    std::function<void()> on_over;           ///< All tasks are over.
  };

  /// @param options Outlive this object. @param launcher Where the job says which tasks it may
  /// lose, for `task_environment`.
  task_group(boost::asio::io_context& context, const launch_options& options,
             std::vector<launch_task> tasks, std::string launcher, events events);
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  /// Takes the outlets of all tasks; to be called once, before any is started.
  void connect(std::vector<task_outlet> outlets);

  /// Starts the process of a task. Errors: as `start_task`.
  [[nodiscard]] expected<void> start(size_t task);

  /// The process of a task has ended, or is not started because the job ends.
  /// @param pause Time between the end of its output and its next start; empty: it is over then.
  void on_end(size_t task, std::optional<duration> pause, output_limit limit);

  /// A task that waits is not started again.
  void drop(size_t task);

  /// Tasks that have ended are over with their output: no start follows.
  void cancel_restarts();

  /// All tasks wait for another start. @pre are_over()
  void on_restart();

  /// Sends a signal to all tasks, and to all that they started.
  void signal_all(int number);

  /// Sends a signal to the processes of the tasks alone.
  void signal_each(int number);

  /// Kills all tasks and all that they started, and limits the output of those that have ended.
  void kill(output_limit limit);

  /// Reads again after the outlets were full.
  void resume();

  [[nodiscard]] bool are_over() const;

  [[nodiscard]] std::span<const launch_task> tasks() const { return tasks_; }

  [[nodiscard]] running_task& operator[](size_t task) { return *members_[task].process; }

private:
  enum class phase : uint8_t { waiting, running, ended, over };

  static constexpr std::array transitions{
    leads(phase::waiting, phase::running, phase::ended, phase::over),
    leads(phase::running, phase::ended),
    leads(phase::ended, phase::waiting, phase::over),
    leads(phase::over, phase::waiting),
  };

  struct member {
    std::unique_ptr<running_task> process;
    boost::asio::steady_timer pause_end;
    /// Between the end of its output and its next start; empty: none is due.
    std::optional<duration> pause{};
    phase_in<phase, transitions> now_in{phase::waiting};
  };

  void finish_if_silent(size_t task);

  boost::asio::io_context& context_;
  const launch_options& options_;
  std::vector<launch_task> tasks_;
  std::vector<std::string> environment_; ///< The launcher's own, as "NAME=value".
  std::string launcher_;
  events events_;
  std::vector<member> members_;
  uint32_t restarts_ = 0; ///< How often all tasks were started again.
};

} // namespace troupe
