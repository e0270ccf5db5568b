// SPDX-License-Identifier: Apache-2.0
// The step itself, and how little there is to it.
#include "tools/model/training_step.hpp"

#include <utility>

namespace troupe {

namespace {

// What it reads it lets go: an owner changes a variable in place if no reader has it.
task<step_on_stream> compute_batch(replica_context& context, batch_work compute,
                                   std::vector<variable> variables) {
  auto reading = context.read_on_device(std::move(variables));
  auto values = co_await reading;
  const batch_draws draws{context.random("batch"), context.random("dropout")};
  auto work
    = [compute = std::move(compute), values = std::move(values), draws](
        std::stop_token stop, compute_stream& on) { return compute(on, values, draws, stop); };
  auto computing = context.compute(std::move(work));
  auto result = co_await computing;
  co_return value_or_throw(std::move(result));
}

} // namespace

step_function training_step(batch_work work, uint32_t examples, job_optimizer optimizer,
                            std::vector<variable> variables) {
  return [compute = std::move(work), examples, optimizer = std::move(optimizer),
          variables = std::move(variables)](replica_context& context) -> task<void> {
    auto computing = compute_batch(context, compute, variables);
    auto computed = co_await computing;
    context.report(nats_of(computed.loss), examples);
    std::vector<gradient_and_variable> gradients;
    for (size_t i = 0; i < variables.size(); ++i)
      gradients.push_back({std::move(computed.gradients[i]), variables[i]});
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
}

} // namespace troupe
