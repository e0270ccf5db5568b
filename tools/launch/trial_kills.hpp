// SPDX-License-Identifier: Apache-2.0
// The kills that `--kill-every` asks for.
#pragma once

#include "tools/launch/ending.hpp"
#include "tools/launch/kill_choice.hpp"
#include "tools/launch/outcome.hpp"
#include "tools/launch/task_group.hpp"
#include "tools/launch/task_terminal.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>

namespace troupe {

/// The tasks to kill, and the time between two kills.
struct kill_plan {
  std::chrono::milliseconds interval;
  kill_choice choice;
};

/// Kills a task from time to time, as long as the job goes on. Thread: that of the context.
class trial_kills {
public:
  /// @param outcome, tasks, ending, terminal Outlive this object.
  trial_kills(boost::asio::io_context& context, kill_plan plan, launch_outcome& outcome,
              task_group& tasks, const launch_ending& ending, task_terminal& terminal);
  trial_kills(const trial_kills&) = delete;
  trial_kills& operator=(const trial_kills&) = delete;

  /// Says what is to come; the first task is killed after the interval.
  void start();

  /// Kills no further task.
  void stop() { next_kill_.cancel(); }

private:
  void kill_one_later();
  void kill_one();

  boost::asio::steady_timer next_kill_;
  kill_plan plan_;
  launch_outcome& outcome_;
  task_group& tasks_;
  const launch_ending& ending_;
  task_terminal& terminal_;
};

} // namespace troupe
