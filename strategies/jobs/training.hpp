// SPDX-License-Identifier: Apache-2.0
// `train`: one call that makes all actors of a training job, and waits for its end.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "actors/recording/records.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/jobs/training_session.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// A look at the variables from time to time, beside the training. If it throws, a warning says
/// why, and the job and later evaluations go on.
struct evaluation {
  uint64_t every_steps = 0; ///< 0 = never.
  /// Computes something from `training_options::variables`, or from all variables of the strategy
  /// if none are named, in their order, on a computing thread.
  std::function<double(std::span<const tensor>)> evaluate;
  /// Told of each result, with the global step that the variables had at least.
  std::function<void(uint64_t step, double value)> on_result;
};

/// How a job runs.
struct training_options {
  uint64_t steps = 1000; ///< Updates to make.

  std::vector<variable> variables; ///< To train; empty: the strategy's trainable variables.

  /// Saving, logging, stopping: told in this order.
  std::vector<std::shared_ptr<session_hook>> hooks;

  /// Goes on from a snapshot: variables, slots, averages, clock, tokens and replicas are as they
  /// were there, and what follows is what would have followed. In the virtual world that is so to
  /// the last bit; in the threads world if a step needs all replicas, under another policy than
  /// `tensorflow`.
  std::optional<job_snapshot> resume;

  /// A step that takes longer ends the job and names what is missing.
  job_time deadline = std::chrono::minutes{10};

  /// Replicas that never come: backups are tried out with them. Indices below the replica count.
  std::vector<uint32_t> dead_replicas;

  /// For links that lose or double messages: what a replica asks (to read, to push, to change a
  /// variable, for a token) is asked again if no answer has come after this time, and counts once
  /// however often it comes. But a variable that another process holds alone, without
  /// `replicate_owners`, is asked for by this process's cache, once.
  /// Choose a few times what a message takes there and back. 0: links are reliable, as TCP's are.
  job_time ask_again_after{0};

  /// The fewest replicas that a job of several processes begins and goes on with; 0: it begins with
  /// all, and goes on with as many as a step needs. Once so many are there, and those of the
  /// chief's process and of parameter servers among them, the others are waited for 5 s more; they
  /// may enter while the job goes on, each at the step that it is at then. If the `stop` of a
  /// worker is asked for, it leaves: its replicas finish their steps, and the job goes on. If fewer
  /// than `min_replicas` are left, and no more within `rejoin_timeout`, the job stops with its
  /// step, and a last snapshot, and fails. At least as many as a step needs; not under policy
  /// `tensorflow`. All processes of a job give the same number.
  uint32_t min_replicas = 0;

  /// How long a replica on a lost node is expected back before the job goes on, or ends,
  /// without it; 0 = not at all. One that comes back later, while the job goes on, takes part
  /// again.
  job_time rejoin_timeout{0};

  /// Whether the loss of a replica ends the job, with a last snapshot if hooks want one, even if
  /// enough replicas are left.
  bool stops_on_loss = false;

  /// After how many steps processes compare their copies of the variables, as `check_replicas`,
  /// where replicas of several processes make every step together; 0: never. The same in all.
  uint64_t check_replicas_every = 0;

  /// How often the chief's process asks the others what their actors do, for hooks that show it; 0
  /// = never.
  job_time observe_period{0};

  /// How long a replica computes beside the time it took: stragglers, and virtual computing times.
  std::function<job_time(uint32_t replica, uint64_t iteration, job_time elapsed)> pace;

  /// Settings that all processes of a job with a chief must agree on, beside seed, replicas, and
  /// names, dtypes and shapes of variables; one line for each. A process that differs is refused,
  /// also when it comes back, and the error names the first line that differs; beyond 4096 bytes of
  /// these lines, then one for each variable, it only says that some differ.
  std::string agreement;

  std::function<void(const step_record&)> on_step; ///< Told of every step, in order.
  /// Told what is wrong but can go on, one line at a time; empty: a line on standard error.
  /// Thread: any.
  std::function<void(const std::string&)> on_warning;
  /// Told, before `train` returns, why the job has failed; empty: a line on standard error. If it
  /// throws, a line on standard error says so, and `train` returns its report.
  std::function<void(const error&)> on_failure;
  troupe::evaluation evaluation;
  std::stop_token stop; ///< Ends the job early, and cleanly; see `min_replicas`.
};

/// Trains the variables of a strategy. Spawns the chief, the token queue, an accumulator for each
/// variable and the replicas, wires them, and waits until the last one has left; there is
/// nothing to start by hand and nothing to forget.
///
/// Where the strategy has the placement of a job of several processes, the job begins when all have
/// called this (or enough: `min_replicas`), or ends with those that have not by its start deadline.
/// Hooks, evaluation, snapshots and `on_step` are those of the process where the chief stands; the
/// others run what stands in them, and all return the same step, failure and reason to stop.
///
/// If hooks leave no step to make, as `stop_at_step_hook` does in a job that has come to its last
/// step before, all return at once, without a failure.
///
/// Thread: the one that made the world.
/// @returns How the job ended; variables hold what they had been trained to.
/// Errors: in the report: stalled and deadline_exceeded, naming what is missing; user_code, if a
/// replica threw and too few were left; what a hook threw. Throws `failure` with invalid_argument
/// if `step` or a function of the evaluation is empty, there are no variables to train, replicas
/// are not as many as the optimizer's, `steps` is 0, a hook is null, `dead_replicas` names one that
/// there is not, or `min_replicas` does not go with the optimizer's options; failed_precondition if
/// `resume` is of another job, or hooks leave the job without a chief.
job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const step_function& step, const training_options& options);

/// `train` with replicas that do more than one step after another. A replica has left the job if
/// its function returns before `should_stop`.
job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const session_function& session, const training_options& options);

/// Trains by `run`: every replica makes every step, none is dropped, and there is no chief. For
/// strategies whose replicas meet, and for steps that call an `optimizer`.
///
/// Where several processes run replicas together, all of them call this, and all return the same
/// step and the same reason to stop. Hooks, evaluation, snapshots, `on_step`, the number of steps
/// and what to `resume` from are those of the first process. A process asked to stop tells the
/// others with the step that is under way, or with the next; all end after the same one. If hooks
/// leave no step to make, all return at once, without a failure.
///
/// In records, what was computed has `arrived` when its replica was done with it, on that process's
/// clock since the step began. Training waits for the evaluation. A snapshot holds what replicas of
/// all processes `keep`; `deadline` is the strategy's.
///
/// Thread: the one that made the world.
/// @returns How the job ended; variables hold what they had been trained to.
/// Errors: in the report: as `strategy::run`, then this process has left the others (see
/// `strategy::leave_others`); as `check_replicas`, in all processes; what a hook threw. Throws
/// `failure` with invalid_argument if `step` or a function of the evaluation is empty, there are no
/// variables or steps, a hook is null, or for an option that means nothing here: `dead_replicas`,
/// `ask_again_after`, `min_replicas`, `rejoin_timeout`, `stops_on_loss`; unimplemented for a
/// strategy that does not `run`; failed_precondition if `resume` is of another seed; as
/// `spread_snapshot` and `restore_snapshot`.
job_report train(strategy& strategy, const step_function& step, const training_options& options);

} // namespace troupe
