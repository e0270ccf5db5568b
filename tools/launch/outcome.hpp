// SPDX-License-Identifier: Apache-2.0
// Decides what becomes of a job when one of its tasks ends, and writes the lines about it.
#pragma once

#include "actors/net/placement.hpp"
#include "tools/launch/tasks.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// How a task ended: by itself, or by a signal.
struct task_end {
  int exit_code = 0;
  int signal = 0; ///< 0 if it ended by itself.

  [[nodiscard]] bool is_success() const { return exit_code == 0 && signal == 0; }
};

/// "exit code 5", "signal 9 (SIGKILL)".
[[nodiscard]] std::string to_string(task_end end);

/// "SIGTERM"; "signal 77" if it has no name.
[[nodiscard]] std::string signal_name(int number);

/// Decides by events. Reads no clock and sends no signal: the caller passes times since the start.
///
/// The first task that fails makes the job fail; how the others end then does not count. Parameter
/// servers often serve until they are told to stop. So they may be told when all other tasks have
/// finished, and then their end does not count either.
///
/// As long as restarts are left, a failure does not make the job fail. A worker that fails is
/// started again alone, and is not waited for when the others have finished. All tasks are started
/// again if the job cannot do without the failed one, or if the others fail because a worker is
/// missing; in the latter case, the worker's restart and this one count once. A task whose exit
/// code says that the command is wrong is not started again.
///
/// The failure of an evaluator neither fails nor restarts the job. The evaluator is started again
/// as often as there may be restarts, which are not counted among the job's.
///
/// Where parameter servers replace each other, one that fails is started again alone, like a
/// worker. Without restarts, or when none is left, the job decides whether it goes on without a
/// parameter server, or a worker, that is spared: if it cannot, another task fails.
class launch_outcome {
public:
  using duration = std::chrono::milliseconds;

  /// The launcher's reaction to the end of a task.
  enum class reaction {
    none,
    end_others,        ///< End the other tasks: the job has failed.
    start_again,       ///< Start this task again: the job may be able to go on with it.
    start_again_later, ///< Start it again after a pause in which the job may end as a whole.
    restart,           ///< End the other tasks, and start all again when all have ended.
    spare,             ///< Only print a line: the others may go on without the task.
    end_servers,       ///< End the parameter servers: no task is left that they could serve.
  };

  /// @param tasks All tasks, just started. @param grace Named in lines; failures that come within
  /// this time after a worker's restart are its consequences. @param restarts The most restarts.
  /// @param spared Tasks that may fail without the job failing, whatever the job says.
  launch_outcome(std::vector<launch_task> tasks, duration grace, uint32_t restarts = 0,
                 const spared_tasks& spared = {});

  /// The job says that it may do without these tasks, too, until all are started again.
  void on_spared(const spared_tasks& spared);

  /// A task has ended.
  /// @pre It was running.
  [[nodiscard]] reaction on_end(size_t task, task_end end, duration time);

  /// A task that had ended was started again.
  void on_start(size_t task) {
    ends_[task].reset();
    killed_for_trial_[task] = false;
  }

  /// A running task is killed to test its loss: its end is a failure like any other.
  void on_trial_kill(size_t task) { killed_for_trial_[task] = true; }

  /// All tasks have ended, and were started again.
  void on_restart();

  /// This signal has asked the whole job to end.
  void on_request(int signal, duration time);

  /// Whether the whole job was asked to end.
  [[nodiscard]] bool is_requested() const { return request_ != 0; }

  /// The parameter servers were told to end: their ends do not count.
  void on_servers_told() { servers_told_ = true; }

  /// A task is killed because it would never end, and no task needs it: its end does not count.
  void on_given_up(size_t task) { given_up_[task] = true; }

  /// Whether the chief, or worker 0 in its place, has finished.
  [[nodiscard]] bool has_finished() const;

  /// Whether a task that is due to start again has no job to come back to.
  [[nodiscard]] bool is_needless(size_t task) const { return serves(task) && has_finished(); }

  /// All tasks that still ran were sent SIGKILL.
  void on_kill();

  [[nodiscard]] size_t running_count() const;

  [[nodiscard]] bool has_ended(size_t task) const { return ends_[task].has_value(); }

  /// The task that failed first, if one did.
  [[nodiscard]] std::optional<size_t> first_failure() const { return first_failure_; }

  /// The launcher's exit code: 0, or that of the task that failed first, as a shell has it.
  [[nodiscard]] int exit_code() const;

  /// The line to print when the job is to end; empty if no task is left to wait for.
  /// @pre A task has failed, or the end was asked for.
  [[nodiscard]] std::string notice() const;

  /// The line about a task that is started again alone.
  [[nodiscard]] std::string restart_notice(size_t task) const;

  /// Whether only parameter servers are left, and they were not told to end yet.
  [[nodiscard]] bool has_idle_servers() const;

  /// The line about a worker, parameter server or evaluator that is spared.
  [[nodiscard]] std::string spare_notice(size_t task) const;

  /// The line about a task that is given up because it is stopped.
  [[nodiscard]] std::string given_up_notice(size_t task) const;

  /// The line that names the tasks to wait for although the job is over; empty if there are none.
  [[nodiscard]] std::string waiting_notice() const;

  /// Whether all tasks are to be started again when they have ended.
  [[nodiscard]] bool restarts() const { return restarts_; }

  /// The last line of a job that has failed; empty for one that has finished. It names the task
  /// that failed and, if that could not go on without another one, the first that was missing.
  [[nodiscard]] std::string summary() const;

private:
  // A task that was spared, or that left the job by itself, while the job was to go on.
  struct early_end {
    size_t task = 0;
    duration time{};
  };

  [[nodiscard]] std::string others_text() const;
  [[nodiscard]] std::string missing_text() const;
  [[nodiscard]] std::optional<reaction> try_again(size_t task, task_end end, duration time);
  [[nodiscard]] bool is_consequence(size_t task, task_end end, duration time) const;
  [[nodiscard]] bool can_spare(size_t task) const;
  [[nodiscard]] bool serves(size_t task) const;
  [[nodiscard]] bool is_spared(size_t task, task_end end) const;

  /// The other tasks, if there are any, are started elsewhere.
  [[nodiscard]] bool is_alone() const { return tasks_.size() == 1; }

  [[nodiscard]] bool is_evaluator(size_t task) const { return tasks_[task].type == "evaluator"; }

  [[nodiscard]] reaction on_evaluator_lost();
  [[nodiscard]] reaction on_spared_lost(size_t task, task_end end, duration time);

  std::vector<launch_task> tasks_;
  duration grace_;
  spared_tasks always_spared_;
  spared_tasks spared_;               // until all are started again
  std::vector<early_end> early_ends_; // in their order
  uint32_t restarts_left_;
  uint32_t evaluator_restarts_left_;
  bool restarts_ = false; // whether all tasks start again once they have ended
  std::vector<std::optional<duration>> restarted_at_; // by task: its last restart alone
  std::optional<duration> counted_restart_at_;        // when a restart was last counted
  std::vector<std::optional<task_end>> ends_;
  std::vector<bool> given_up_;         // by task
  std::vector<bool> killed_for_trial_; // by task
  std::optional<size_t> first_failure_;
  duration failed_at_{};
  size_t running_at_failure_ = 0;
  size_t killed_ = 0; // tasks that ran when the launcher sent SIGKILL
  bool servers_told_ = false;
  int request_ = 0; // the signal that asked the job to end; 0: none
  duration requested_at_{};
};

} // namespace troupe
