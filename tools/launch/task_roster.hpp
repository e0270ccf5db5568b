// SPDX-License-Identifier: Apache-2.0
// The tasks of a launcher, as far as they have come, and what each is to the job.
#pragma once

#include "actors/net/placement.hpp"
#include "tools/launch/task_process.hpp"
#include "tools/launch/tasks.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A task's past in the present attempt of the job.
struct task_record {
  std::optional<task_end> end; ///< Empty: it runs.
  bool is_due = false;         ///< It has ended, and is to be started again alone.
  bool is_given_up = false;    ///< It is killed because it would never end, and no task needs it.
  bool is_killed_for_trial = false;                      ///< It is killed to test its loss.
  std::optional<std::chrono::milliseconds> restarted_at; ///< Its last restart alone.
};

/// Knows which tasks run, and which of them the job can do without. Tasks are named by their
/// positions.
class task_roster {
public:
  /// @param tasks All tasks, just started. @param spared Tasks that may fail without the job
  /// failing, whatever the job says.
  task_roster(std::vector<launch_task> tasks, const spared_tasks& spared);

  /// The job says that it may do without these tasks, too, until all are started again.
  void spare(const spared_tasks& spared);

  /// All tasks are started again.
  void on_restart();

  [[nodiscard]] size_t size() const { return tasks_.size(); }

  [[nodiscard]] task_record& operator[](size_t task) { return records_[task]; }

  [[nodiscard]] const task_record& operator[](size_t task) const { return records_[task]; }

  [[nodiscard]] std::string name(size_t task) const { return tasks_[task].name(); }

  [[nodiscard]] bool has_ended(size_t task) const { return records_[task].end.has_value(); }

  [[nodiscard]] size_t running_count() const;

  /// Whether the chief, or worker 0 in its place, has finished.
  [[nodiscard]] bool has_finished() const;

  /// Whether some tasks run, and these and all that are due only serve others.
  [[nodiscard]] bool only_servers_run() const;

  /// Whether the other tasks, if there are any, are started elsewhere.
  [[nodiscard]] bool is_alone() const { return tasks_.size() == 1; }

  [[nodiscard]] bool is_evaluator(size_t task) const { return tasks_[task].type == "evaluator"; }

  /// Whether the job is over without this task. A worker that was started again may come too late,
  /// and find no task that it could work for.
  [[nodiscard]] bool serves(size_t task) const;

  /// Whether the task can be started again alone.
  [[nodiscard]] bool can_spare(size_t task) const;

  /// Whether the job may go on when the task has ended like this, and is not started again.
  [[nodiscard]] bool is_spared(size_t task, task_end end) const;

private:
  std::vector<launch_task> tasks_;
  std::vector<task_record> records_; // by task
  spared_tasks always_spared_;
  spared_tasks spared_; // until all are started again
};

} // namespace troupe
