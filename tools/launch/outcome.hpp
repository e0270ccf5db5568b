// SPDX-License-Identifier: Apache-2.0
// The outcome of a job: its first failure, the consequences, and the lines about them.
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

/// Decides by events, reads no clock and sends no signal: times come in, since the start.
///
/// The first task that fails makes the job fail; how the others end then says nothing. Parameter
/// servers often serve until they are told to stop, so when all others have finished they may be
/// told, and then their end says nothing either.
///
/// As long as restarts are left, a failure does not make the job fail. A worker that fails is
/// started again by itself, and is not waited for when the others have finished. If the job cannot
/// do without the task, or the others fail for want of that worker, all are started again; in the
/// latter case, the worker's restart and this one count once. An exit code that says that the
/// command is wrong is not tried again.
///
/// An evaluator only looks on: its failure neither fails nor restarts the job. It is
/// started again as often as there may be restarts, which are not counted among the job's.
///
/// Where parameter servers stand in for each other, one that fails is started again by itself like
/// a worker. Without restarts, or when none is left, it is up to the job whether it goes on without
/// a parameter server, or a worker, that is spared: if it cannot, another task fails.
class launch_outcome {
public:
  using duration = std::chrono::milliseconds;

  /// The launcher's reaction to the end of a task.
  enum class reaction {
    none,
    end_others,        ///< The job has failed: no other task is to go on.
    start_again,       ///< The task alone: the job may be able to go on with it.
    start_again_later, ///< The task alone, after a pause in which the job may end as a whole.
    restart,     ///< No other task is to go on, and when all have ended, all are started again.
    spare,       ///< Nothing, but to tell of it: the others may go on without it.
    end_servers, ///< Only parameter servers are left, and no task that they could serve.
  };

  /// @param tasks All of them, just started. @param grace For the summary, and for how long after a
  /// worker's restart the others' failures are its consequences.
  /// @param restarts Restarts of the job at most.
  /// @param spared Tasks that may fail without the job failing, whatever the job says.
  launch_outcome(std::vector<launch_task> tasks, duration grace, uint32_t restarts = 0,
                 const spared_tasks& spared = {});

  /// The job says that it may outlast the loss of these, too, until all are started again.
  void on_spared(const spared_tasks& spared);

  /// A task has ended.
  /// @pre It was running.
  [[nodiscard]] reaction on_end(size_t task, task_end end, duration time);

  /// A task that had ended was started again.
  void on_start(size_t task) {
    ends_[task].reset();
    killed_for_trial_[task] = false;
  }

  /// A running task is killed to try out its loss: its end is a failure as any.
  void on_trial_kill(size_t task) { killed_for_trial_[task] = true; }

  /// All tasks have ended, and were started again.
  void on_restart();

  /// The whole job was asked to end, by this signal.
  void on_request(int signal, duration time);

  /// Whether the whole job was asked to end.
  [[nodiscard]] bool is_requested() const { return request_ != 0; }

  /// Parameter servers were told that they are not needed any more.
  void on_servers_told() { servers_told_ = true; }

  /// A task is killed because it will never end, and no task needs it: its end says nothing.
  void on_given_up(size_t task) { given_up_[task] = true; }

  /// Whether the chief, or worker 0 in its place, has finished.
  [[nodiscard]] bool has_finished() const;

  /// Whether a task that was to be started again has no job to come back to.
  [[nodiscard]] bool is_needless(size_t task) const { return serves(task) && has_finished(); }

  /// All tasks that were still there were sent SIGKILL.
  void on_kill();

  [[nodiscard]] size_t running_count() const;

  [[nodiscard]] bool has_ended(size_t task) const { return ends_[task].has_value(); }

  /// The task that failed first, if one did.
  [[nodiscard]] std::optional<size_t> first_failure() const { return first_; }

  /// The launcher's exit code: 0, or that of the first task that failed, as a shell has it.
  [[nodiscard]] int exit_code() const;

  /// The line for the moment when the job is to end; empty if no task is left to wait for.
  /// @pre A task has failed, or the end was asked for.
  [[nodiscard]] std::string notice() const;

  /// The line about a task that is started again by itself.
  [[nodiscard]] std::string restart_notice(size_t task) const;

  /// Whether only parameter servers are left, and none was told yet to end.
  [[nodiscard]] bool has_idle_servers() const;

  /// The line about a worker, parameter server or evaluator that is spared.
  [[nodiscard]] std::string spare_notice(size_t task) const;

  /// The line about a task that is given up because it is stopped.
  [[nodiscard]] std::string given_up_notice(size_t task) const;

  /// The line that names the tasks to wait for although the job is over; empty if there are none.
  [[nodiscard]] std::string waiting_notice() const;

  /// Whether all tasks are to be started again when they have ended.
  [[nodiscard]] bool restarts() const { return restarts_; }

  /// The last line of a job that has failed; empty for one that has finished.
  [[nodiscard]] std::string summary() const;

private:
  [[nodiscard]] std::string others_text() const;
  [[nodiscard]] std::optional<reaction> try_again(size_t task, task_end end, duration time);
  [[nodiscard]] bool is_consequence(size_t task, task_end end, duration time) const;
  [[nodiscard]] bool can_spare(size_t task) const;
  [[nodiscard]] bool serves(size_t task) const;
  [[nodiscard]] bool is_spared(size_t task, task_end end) const;

  [[nodiscard]] bool looks_on(size_t task) const { return tasks_[task].type == "evaluator"; }

  [[nodiscard]] reaction on_evaluator_lost();
  [[nodiscard]] reaction on_spare_lost(size_t task, task_end end, duration time);

  std::vector<launch_task> tasks_;
  duration grace_;
  spared_tasks always_spared_;
  spared_tasks spared_;                // now
  std::optional<size_t> first_spared_; // it failed, and the job was to go on
  uint32_t restarts_left_;
  uint32_t evaluator_restarts_left_;
  bool restarts_ = false;                             // all, once they have ended
  std::vector<std::optional<duration>> restarted_at_; // by task: when it was, by itself
  std::optional<duration> paid_at_;                   // when a restart was last counted
  std::vector<std::optional<task_end>> ends_;
  std::vector<bool> given_up_;         // by task
  std::vector<bool> killed_for_trial_; // by task
  std::optional<size_t> first_;
  duration failed_at_{};
  size_t running_at_failure_ = 0;
  size_t killed_ = 0; // tasks that ran when the launcher sent SIGKILL
  bool servers_told_ = false;
  int request_ = 0; // the signal, if the end was asked for
  duration requested_at_{};
};

} // namespace troupe
