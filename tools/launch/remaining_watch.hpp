// SPDX-License-Identifier: Apache-2.0
// A look, from time to time, at tasks that remain when their job is over.
#pragma once

#include "tools/launch/ending.hpp"
#include "tools/launch/outcome.hpp"
#include "tools/launch/task_group.hpp"
#include "tools/launch/task_terminal.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <set>

namespace troupe {

/// When the chief has finished, a task that is stopped (SIGSTOP) would keep its launcher waiting
/// for ever: it is killed if it is stopped in two checks. Other tasks may have work left, and are
/// named once. Checks begin with the chief's end, and go on until all tasks are asked to end, or
/// are over. Thread: that of the context.
class remaining_watch {
public:
  /// @param outcome, tasks, ending, terminal Outlive this object.
  remaining_watch(boost::asio::io_context& context, launch_outcome& outcome, task_group& tasks,
                  const launch_ending& ending, task_terminal& terminal);
  remaining_watch(const remaining_watch&) = delete;
  remaining_watch& operator=(const remaining_watch&) = delete;

  /// Makes the first check, if tasks remain, unless checks go on. @pre The chief has finished.
  void start();

  /// Makes no further check.
  void stop() { next_check_.cancel(); }

private:
  void check();
  [[nodiscard]] bool do_some_remain() const;
  void kill_stopped_tasks();

  boost::asio::steady_timer next_check_;
  launch_outcome& outcome_;
  task_group& tasks_;
  const launch_ending& ending_;
  task_terminal& terminal_;
  std::set<size_t> stopped_; // in the last check
  bool checks_ = false;      // whether another check is to come
  bool has_named_ = false;   // in this or an earlier attempt of the job
};

} // namespace troupe
