// SPDX-License-Identifier: Apache-2.0
// Counts the tasks that run, and tells which are spared.
#include "tools/launch/task_roster.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

task_roster::task_roster(std::vector<launch_task> tasks, const spared_tasks& spared)
  : tasks_(std::move(tasks)), records_(tasks_.size()), always_spared_(spared), spared_(spared) {}

void task_roster::spare(const spared_tasks& spared) {
  spared_.workers |= spared.workers;
  spared_.parameter_servers |= spared.parameter_servers;
}

void task_roster::on_restart() {
  records_.assign(size(), {});
  spared_ = always_spared_;
}

size_t task_roster::running_count() const {
  return static_cast<size_t>(std::ranges::count(
    records_, false, [](const task_record& each) { return each.end.has_value(); }));
}

bool task_roster::has_finished() const {
  for (size_t task = 0; task < size(); ++task)
    if (!can_spare(task) && tasks_[task].type != "ps")
      return records_[task].end && records_[task].end->is_success();
  return false;
}

bool task_roster::only_servers_run() const {
  for (size_t task = 0; task < size(); ++task)
    if ((!has_ended(task) || records_[task].is_due) && !serves(task)) return false;
  return running_count() > 0;
}

bool task_roster::serves(size_t task) const {
  return tasks_[task].type == "ps" || records_[task].restarted_at.has_value();
}

bool task_roster::can_spare(size_t task) const {
  return is_evaluator(task) || is_worker_but_no_chief(tasks_, tasks_[task])
         || (tasks_[task].type == "ps" && spared_.parameter_servers);
}

bool task_roster::is_spared(size_t task, task_end end) const {
  if (is_alone()) return false;
  auto is_ps = tasks_[task].type == "ps";
  auto is_spare = is_evaluator(task) || ((is_ps || spared_.workers) && can_spare(task));
  return is_spare && !end.is_misuse();
}

} // namespace troupe
