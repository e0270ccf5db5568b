// SPDX-License-Identifier: Apache-2.0
// Runs the job of `troupe launch`, from the start of its tasks to the end of the last one.
#pragma once

#include "tools/launch/ending.hpp"
#include "tools/launch/notice_socket.hpp"
#include "tools/launch/outcome.hpp"
#include "tools/launch/output.hpp"
#include "tools/launch/remaining_watch.hpp"
#include "tools/launch/task_group.hpp"
#include "tools/launch/task_terminal.hpp"
#include "tools/launch/trial_kills.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <chrono>
#include <optional>
#include <vector>

namespace troupe {

/// Everything that happens is an event of one loop: bytes in a pipe, a signal, a task's end, a
/// timer. `launch_outcome` judges the ends of tasks, and the job carries out its reactions by the
/// other parts, which know nothing of the job. Thread: one, which must not end before the tasks,
/// since they die with it.
class launch_job {
public:
  /// @param options Outlive this object. Their job id is given to the tasks.
  /// @param tasks All tasks to start. @param notices Where the job says which tasks it may lose.
  /// @param kills Nothing: no task is killed for a trial.
  launch_job(const launch_options& options, const std::vector<launch_task>& tasks,
             notice_socket notices, std::optional<kill_plan> kills);

  /// Starts all tasks. If one cannot be started, the others are killed with this object.
  /// Errors: as `launch_output::open` and `start_task`.
  [[nodiscard]] expected<void> start();

  /// Waits for all tasks and prints the outcome. @returns The exit code.
  [[nodiscard]] int run();

private:
  using duration = std::chrono::milliseconds;

  void watch(int number);
  void wait_for_signal();
  void on_signal(int number);
  void ask_to_end(int number, int passed_on);
  void look_at_all();
  void on_end(size_t task, task_end end);
  void start_again(size_t task);
  void on_all_over();
  void restart_all();
  void finish();
  void print_summary();
  [[nodiscard]] duration now() const;

  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  notice_socket notices_;
  launch_outcome outcome_;
  task_terminal terminal_; // before the tasks, which print as long as they live
  launch_output output_;
  task_group tasks_;
  launch_ending ending_;
  remaining_watch remaining_;
  std::optional<trial_kills> kills_;
  std::chrono::steady_clock::time_point started_;
};

} // namespace troupe
