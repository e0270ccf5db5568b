// SPDX-License-Identifier: Apache-2.0
// A replica's life in a training job: step after step, until there are no more tokens.
#pragma once

#include "strategies/training.hpp"

namespace troupe {

/// Runs a step function on one replica until the job is over.
class training_session {
public:
  training_session(replica_context& context, const sync_replicas_optimizer& optimizer)
    : context_(context), optimizer_(optimizer) {}

  /// One step. A step that was cancelled, because the others were faster, ends with the next token
  /// like any other.
  /// Errors: throws `failure` with cancelled when the job is over; failed_precondition if `step`
  /// did not apply gradients; whatever `step` throws.
  [[nodiscard]] task<void> run(const step_function& step);

private:
  replica_context& context_;
  const sync_replicas_optimizer& optimizer_;
};

} // namespace troupe
