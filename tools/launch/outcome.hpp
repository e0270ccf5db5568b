// SPDX-License-Identifier: Apache-2.0
// Decides what becomes of a job when one of its tasks ends.
#pragma once

#include "tools/launch/restart_budget.hpp"
#include "tools/launch/task_roster.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

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

  /// The end of a task that the job could not go on without.
  struct failure {
    size_t task = 0;
    duration time{};
    size_t others = 0;       ///< Tasks that ran then.
    bool is_retried = false; ///< Whether all tasks are started again when they have ended.
  };

  /// A signal that has asked the whole job to end.
  struct request {
    int signal = 0;
    duration time{};
  };

  /// A task that was spared, or that left the job by itself, while the job was to go on.
  struct early_end {
    size_t task = 0;
    duration time{};
  };

  /// @param tasks All tasks, just started. @param grace The time that tasks have to end; failures
  /// that come within it after a worker's restart are consequences. @param restarts The most.
  /// @param spared Tasks that may fail without the job failing, whatever the job says.
  launch_outcome(std::vector<launch_task> tasks, duration grace, uint32_t restarts = 0,
                 const spared_tasks& spared = {});

  /// The job says that it may do without these tasks, too, until all are started again.
  void on_spared(const spared_tasks& spared) { tasks_.spare(spared); }

  /// A task has ended.
  /// @pre It was running.
  [[nodiscard]] reaction on_end(size_t task, task_end end, duration time);

  /// A task that had ended was started again.
  void on_start(size_t task);

  /// A running task is killed to test its loss: its end is a failure like any other.
  void on_trial_kill(size_t task) { tasks_[task].is_killed_for_trial = true; }

  /// All tasks have ended, and were started again.
  void on_restart();

  /// This signal has asked the whole job to end.
  void on_request(int signal, duration time);

  /// The parameter servers were told to end: their ends do not count.
  void on_servers_told() { servers_told_ = true; }

  /// A task is killed because it would never end, and no task needs it: its end does not count.
  void on_given_up(size_t task) { tasks_[task].is_given_up = true; }

  /// All tasks that still ran were sent SIGKILL.
  void on_kill() { killed_ = tasks_.running_count(); }

  [[nodiscard]] const task_roster& tasks() const { return tasks_; }

  /// Whether a task that is due to start again has no job to come back to.
  [[nodiscard]] bool is_needless(size_t task) const;

  /// Whether only parameter servers are left, and they were not told to end yet.
  [[nodiscard]] bool has_idle_servers() const;

  /// Whether all tasks are to be started again when they have ended.
  [[nodiscard]] bool restarts() const { return failure_ && failure_->is_retried; }

  /// The launcher's exit code: 0, or that of the task that failed first, as a shell has it.
  [[nodiscard]] int exit_code() const;

  /// The first failure of the present attempt.
  [[nodiscard]] const std::optional<failure>& first_failure() const { return failure_; }

  /// The first signal that counts; later ones do not, nor does one to a job that has failed.
  [[nodiscard]] const std::optional<request>& end_request() const { return request_; }

  /// In their order.
  [[nodiscard]] std::span<const early_end> early_ends() const { return early_ends_; }

  /// How often the task may be started again yet, by itself or with all others.
  [[nodiscard]] uint32_t restarts_left(size_t task) const;

  /// How many tasks ran when all were sent SIGKILL.
  [[nodiscard]] size_t killed_count() const { return killed_; }

  [[nodiscard]] duration grace() const { return grace_; }

private:
  [[nodiscard]] std::optional<reaction> try_again(size_t task, task_end end, duration time);
  [[nodiscard]] reaction on_evaluator_lost(size_t task);
  [[nodiscard]] reaction on_spared_lost(size_t task, task_end end, duration time);

  task_roster tasks_;
  duration grace_;
  restart_budget budget_;
  std::vector<early_end> early_ends_;
  std::optional<failure> failure_;
  std::optional<request> request_;
  size_t killed_ = 0;
  bool servers_told_ = false;
};

} // namespace troupe
