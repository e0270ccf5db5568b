// SPDX-License-Identifier: Apache-2.0
// Passes calls on to the optimizer that the strategy takes.
#include "tools/job/job_optimizer.hpp"

namespace troupe {

task<void>
job_optimizer::apply_gradients(replica_context& context,
                               std::vector<gradient_and_variable> gradients_and_variables) const {
  if (const auto* sync = as<sync_replicas_optimizer>()) {
    auto applying = sync->apply_gradients(context, std::move(gradients_and_variables));
    co_await applying;
    co_return;
  }
  auto applying = as<optimizer>()->apply_gradients(context, std::move(gradients_and_variables));
  co_await applying;
}

task<void> job_optimizer::apply_gradients(replica_context& context, troupe::gradient gradient,
                                          troupe::variable variable) const {
  std::vector<gradient_and_variable> pairs{{std::move(gradient), std::move(variable)}};
  return apply_gradients(context, std::move(pairs));
}

task<void> job_optimizer::minimize(replica_context& context, loss_function loss,
                                   std::vector<variable> variables, uint32_t examples) const {
  if (const auto* sync = as<sync_replicas_optimizer>()) {
    auto minimizing = sync->minimize(context, std::move(loss), std::move(variables), examples);
    co_await minimizing;
    co_return;
  }
  auto minimizing = as<optimizer>()->minimize(context, std::move(loss), std::move(variables));
  auto result = co_await minimizing;
  context.report(result, examples);
}

} // namespace troupe
