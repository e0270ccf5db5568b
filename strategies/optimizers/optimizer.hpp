// SPDX-License-Identifier: Apache-2.0
// The optimizer of replicas that run together: merge, reduce and update in one call.
#pragma once

#include "kernels/updates/update_plan.hpp"
#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

class closure_context;
class gradient_buckets;

/// How gradients become an update.
struct optimizer_options {
  /// How the gradients of all replicas are combined. A loss that is divided by the global batch, as
  /// in tf.distribute, needs their sum; a loss that is a replica's mean needs their mean.
  reduce_op aggregation = reduce_op::sum;
  /// The number of batches that are averaged for an update: large batches on small memory.
  uint32_t accumulation_steps = 1;
  /// The global norm of the combined gradients is clipped to this; 0: no clip.
  double clip_global_norm = 0;
};

/// In a run all replicas make the same steps, so that their gradients can be combined and applied
/// at once: every variable's owner reads all of them and writes the variable, in one pass over
/// memory. A training step needs one call:
///
///     auto applying = optimizer.apply_gradients(context, gradients);
///     co_await applying;
///
/// Optimizers may take turns on a variable, in several processes, too: an update names its
/// optimizer, and the owner makes it by that rule, whichever update came before. Before the first
/// update of a variable its owner is asked whether it takes the optimizer. If one owner refuses,
/// none of the variables is changed, and all keep the slots that they have.
///
/// A cheap value; copies mean the same optimizer. Thread: any.
class optimizer {
public:
  /// @param rule The update rule: `rules::sgd`, `rules::adam` and so on, with its settings.
  /// @param schedule How the learning rate changes over the updates of a variable.
  /// Errors: throws `failure` with invalid_argument, as `validate(rule)` does, for
  /// accumulation_steps of 0, or a negative norm.
  explicit optimizer(update_rule rule, optimizer_options options = {},
                     learning_rate_schedule schedule = {});

  /// Makes an optimizer of a whole plan, with clips and an average. Errors: as above, and as
  /// `validate(plan)`.
  explicit optimizer(update_plan plan, optimizer_options options = {});

  // A move copies, so that a handle that was moved from still means the same.
  optimizer(const optimizer&) = default;
  optimizer& operator=(const optimizer&) = default;

  [[nodiscard]] const optimizer_options& options() const;

  /// Combines the gradients of all replicas and applies them: a merge_call, which all replicas have
  /// to make with gradients of the same variables. Where several batches are accumulated, only each
  /// `accumulation_steps`-th call is one. The gradients that are kept until then are no part of
  /// checkpoints; a run of this process that fails discards them. A gradient of a narrower floating
  /// type than its variable's is widened first.
  /// @returns True if the call has made an update.
  /// Errors: throws `failure`: invalid_argument if there is no gradient at all, one does not fit
  /// its variable or is for one of another strategy, a variable has two, or replicas bring
  /// gradients of different variables; type_mismatch for a gradient that does not widen to its
  /// variable, or a variable that is neither f32 nor f64; unimplemented for an average of a
  /// variable that is synchronised on read; as `merge_call`.
  [[nodiscard]] task<bool>
  apply_gradients(replica_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables) const;

  /// Applies gradients as the call above, but MEAN divides by `contributors`: the number of
  /// replicas that brought more than zeros, as `join` counts them.
  /// Errors: as above; throws `failure`: invalid_argument for none, more than there are, or another
  /// number than other replicas give; failed_precondition if several batches are accumulated.
  [[nodiscard]] task<void>
  apply_gradients(replica_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables,
                  uint32_t contributors) const;

  /// Applies the gradient of a single variable, as the call above.
  [[nodiscard]] task<bool> apply_gradients(replica_context& context, troupe::gradient gradient,
                                           troupe::variable variable) const;

  /// Applies the gradients of a scheduled function by themselves: the gradients of other workers
  /// come before or after. Batches are accumulated for each worker by itself.
  /// Errors: throws `failure`: invalid_argument if there is no gradient at all, or one does not fit
  /// its variable or is for one of another strategy; unimplemented for `clip_global_norm`, since
  /// updates of other workers would come between (use `clip_by_global_norm`); cancelled, as every
  /// task of such a function.
  [[nodiscard]] task<bool>
  apply_gradients(closure_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables) const;

  /// Applies gradients that are combined already: in all replicas the same sum, as
  /// `gradient_buckets` gives it. A merge_call, as `apply_gradients`.
  /// Errors: as `apply_gradients`; throws `failure` with failed_precondition if several batches are
  /// to be accumulated, which is done before gradients are combined.
  [[nodiscard]] task<void>
  apply_reduced_gradients(replica_context& context,
                          std::vector<gradient_and_variable> gradients_and_variables) const;

  /// `compute_gradients`, then `apply_gradients`. @param grad_loss As for `compute_gradients`.
  /// @returns The loss of this replica's batch.
  [[nodiscard]] task<double> minimize(replica_context& context, loss_function loss,
                                      std::vector<variable> variables, double grad_loss = 1) const;

  /// `minimize` for all trainable variables of the strategy, in order of creation.
  [[nodiscard]] task<double> minimize(replica_context& context, loss_function loss) const;

  /// `minimize` for the variables of the buckets: their gradients are combined while others are
  /// still computed. Errors: as `apply_reduced_gradients`, and as the buckets.
  [[nodiscard]] task<double> minimize(replica_context& context, loss_function loss,
                                      gradient_buckets buckets) const;

private:
  struct shared_state;

  std::shared_ptr<shared_state> state_;
};

} // namespace troupe
