// SPDX-License-Identifier: Apache-2.0
// Synchronous training with backup replicas, in the terms of TensorFlow's SyncReplicasOptimizer.
#pragma once

#include "actors/sync_policy.hpp"
#include "kernels/learning_rate.hpp"
#include "kernels/update_rules.hpp"
#include "strategies/replica_context.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A gradient and the variable that it is for.
struct gradient_and_variable {
  troupe::gradient gradient;
  troupe::variable variable;
};

/// What became of a replica's gradients.
struct apply_outcome {
  uint64_t accepted = 0;    ///< Of how many variables the gradient became part of the step.
  uint64_t stale = 0;       ///< Of how many it came too late and was dropped.
  uint64_t global_step = 0; ///< The token: the step that this replica works on next.
};

/// A step that waits for all replicas is as slow as the slowest. This optimizer waits for
/// `replicas_to_aggregate` gradients of each variable, averages them, applies the update, and lets
/// every replica go on with a token; the other replicas are backups, whose late gradients are
/// dropped. `sync_options::policy` says what becomes of those who are late.
///
/// A cheap value; copies mean the same settings. Thread: any.
class sync_replicas_optimizer {
public:
  /// @param rule What an update does: `sgd`, `momentum` or `adam` with their settings.
  /// @param schedule How the learning rate changes over the updates of a variable.
  /// Errors: throws `failure` with invalid_argument, as `validate(rule)` and
  /// `sync_options::validate` do.
  sync_replicas_optimizer(update_rule rule, sync_options options,
                          learning_rate_schedule schedule = {});

  [[nodiscard]] const update_rule& rule() const { return rule_; }

  [[nodiscard]] const learning_rate_schedule& schedule() const { return schedule_; }

  [[nodiscard]] const sync_options& options() const { return options_; }

  /// Pushes each gradient to its variable's accumulator; when all are judged, waits for a token.
  /// A variable that the loss does not depend on is left out.
  /// Errors: throws `failure`: invalid_argument ("Must supply at least one variable") if there is
  /// no gradient at all, or one does not fit its variable; not_found for a variable that the job
  /// does not train; cancelled when the job is over.
  [[nodiscard]] task<apply_outcome>
  apply_gradients(replica_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables) const;

  /// Likewise for a job with one variable.
  [[nodiscard]] task<apply_outcome> apply_gradients(replica_context& context,
                                                    troupe::gradient gradient,
                                                    troupe::variable variable) const;

  /// Waits for the next token without giving a gradient: what becomes of a cancelled step.
  /// Errors: throws `failure` with cancelled when the job is over.
  [[nodiscard]] task<uint64_t> take_token(replica_context& context) const;

private:
  update_rule rule_;
  learning_rate_schedule schedule_;
  sync_options options_;
};

} // namespace troupe
