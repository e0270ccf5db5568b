// SPDX-License-Identifier: Apache-2.0
// Kills tasks that are stopped, and names others.
#include "tools/launch/remaining_watch.hpp"

#include "tools/launch/outcome_lines.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe {

remaining_watch::remaining_watch(boost::asio::io_context& context, launch_outcome& outcome,
                                 task_group& tasks, const launch_ending& ending,
                                 task_terminal& terminal)
  : next_check_(context), outcome_(outcome), tasks_(tasks), ending_(ending), terminal_(terminal) {}

void remaining_watch::start() {
  if (!checks_) check();
}

void remaining_watch::check() {
  auto is_first = !std::exchange(checks_, do_some_remain());
  if (!checks_) return;
  kill_stopped_tasks();
  auto notice = waiting_notice(outcome_);
  if (!is_first && !notice.empty() && !std::exchange(has_named_, true)) terminal_.tell(notice);
  next_check_.expires_after(std::max(launch_grace_min, outcome_.grace()));
  next_check_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) check();
  });
}

bool remaining_watch::do_some_remain() const {
  return outcome_.tasks().has_finished() && !ending_.has_begun() && !tasks_.are_over();
}

void remaining_watch::kill_stopped_tasks() {
  const auto before = std::exchange(stopped_, {});
  for (size_t task = 0; task < outcome_.tasks().size(); ++task) {
    if (outcome_.tasks().has_ended(task) || !tasks_[task].is_stopped()) continue;
    stopped_.insert(task);
    if (!before.contains(task)) continue;
    terminal_.tell(given_up_notice(outcome_, task));
    outcome_.on_given_up(task);
    tasks_[task].signal_all(SIGKILL);
  }
}

} // namespace troupe
