// SPDX-License-Identifier: Apache-2.0
// A replica's life in a training job: step after step, until there are no more tokens.
#pragma once

#include "strategies/contexts/replica_context.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include <functional>
#include <stop_token>
#include <utility>

namespace troupe {

/// One training step, run by every replica again and again: read variables, compute gradients,
/// `co_await optimizer.apply_gradients(...)`. Each replica runs its own copy.
using step_function = std::function<task<void>(replica_context&)>;

/// A replica's view of its job, for replicas that do more than make steps:
///
///     while (!session.should_stop()) {
///       auto running = session.run(step);
///       co_await running;
///     }
///
/// There is nothing to start or to join: the job makes a session for every replica.
class training_session {
public:
  /// @param leave Asked for when the replica is to leave the job after its step.
  training_session(replica_context& context, const sync_replicas_optimizer& optimizer,
                   std::stop_token leave = {})
    : context_(context), optimizer_(optimizer), leave_(std::move(leave)) {}

  /// True once the job is over, or goes on without this replica: its process is to leave it.
  [[nodiscard]] bool should_stop() const { return over_ || leave_.stop_requested(); }

  /// The replica that makes these steps.
  [[nodiscard]] replica_context& context() { return context_; }

  /// One step. A step that was cancelled, because the others were faster, ends with the next token
  /// like any other; one that the end of the job cut off ends the session.
  /// Errors: throws `failure` with failed_precondition if `step` did not apply gradients; whatever
  /// `step` throws.
  /// @param step Outlives the task: keep it in a `step_function`.
  [[nodiscard]] task<void> run(const step_function& step);
  [[nodiscard]] task<void> run(step_function&& step) = delete;

  /// Goes on where a replica was when it was saved: finishes what it was at, whose gradient is
  /// stale, and takes the next token.
  [[nodiscard]] task<void> resume(replica_progress saved);

  /// Joins a job that goes on, late or in place of a replica that was lost with its node: begins
  /// with the step that the variables are at, and with numbers that its former lives had not.
  /// @param life How often the replica was lost or late.
  [[nodiscard]] task<void> rejoin(uint64_t life);

private:
  [[nodiscard]] task<void> take_token();
  void begin_iteration();

  replica_context& context_;
  const sync_replicas_optimizer& optimizer_;
  std::stop_token leave_;
  bool over_ = false;
};

/// The body of every replica of a job, given its session.
using session_function = std::function<task<void>(training_session&)>;

} // namespace troupe
