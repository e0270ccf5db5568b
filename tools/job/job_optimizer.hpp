// SPDX-License-Identifier: Apache-2.0
// The optimizer of a job, for every strategy that the job may have.
#pragma once

#include "kernels/updates/update_plan.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A step function is written once, but the strategy decides which optimizer it calls: an
/// `optimizer` where replicas meet, else a `sync_replicas_optimizer`. This holds either of them. A
/// cheap value; copies share the optimizer. Thread: any.
class job_optimizer {
public:
  job_optimizer(optimizer own) : own_(std::move(own)) {}

  job_optimizer(sync_replicas_optimizer own) : own_(std::move(own)) {}

  /// @param plan The update plan that `own` has, too.
  template <class Optimizer>
  job_optimizer(Optimizer own, update_plan plan) : own_(std::move(own)), plan_(std::move(plan)) {}

  /// Applies a replica's gradients with those of the others. Errors: as the optimizer's.
  [[nodiscard]] task<void>
  apply_gradients(replica_context& context,
                  std::vector<gradient_and_variable> gradients_and_variables) const;

  /// Applies the gradient of a single variable. Errors: as the optimizer's.
  [[nodiscard]] task<void> apply_gradients(replica_context& context, troupe::gradient gradient,
                                           troupe::variable variable) const;

  /// Computes the gradients of a loss on a tape, reports the loss, and applies them.
  /// @param examples Examples in the replica's batch, for the report. Errors: as the optimizer's.
  [[nodiscard]] task<void> minimize(replica_context& context, loss_function loss,
                                    std::vector<variable> variables, uint32_t examples) const;

  /// The optimizer itself, if it is of this kind; else null.
  template <class Optimizer>
  [[nodiscard]] const Optimizer* as() const {
    return std::get_if<Optimizer>(&own_);
  }

  /// The update plan, if it is known.
  [[nodiscard]] const std::optional<update_plan>& plan() const { return plan_; }

private:
  std::variant<optimizer, sync_replicas_optimizer> own_;
  std::optional<update_plan> plan_;
};

} // namespace troupe
