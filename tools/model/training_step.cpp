// SPDX-License-Identifier: Apache-2.0
// The step itself, and how little there is to it.
#include "tools/model/training_step.hpp"

#include <utility>

namespace troupe {

step_function training_step(batch_work work, uint32_t examples, job_optimizer optimizer,
                            std::vector<variable> variables) {
  return [compute = std::move(work), examples, optimizer = std::move(optimizer),
          variables = std::move(variables)](replica_context& context) -> task<void> {
    auto reading = context.read(variables);
    auto values = co_await reading;
    const batch_draws draws{context.random("batch"), context.random("dropout")};
    auto work
      = [=](std::stop_token stop, compute_stream& on) { return compute(on, values, draws, stop); };
    auto computing = context.compute(std::move(work));
    auto result = co_await computing;
    auto computed = value_or_throw(std::move(result));
    context.report(nats_of(computed.loss), examples);
    std::vector<gradient_and_variable> gradients;
    for (size_t i = 0; i < variables.size(); ++i)
      gradients.push_back({std::move(computed.gradients[i]), variables[i]});
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
}

} // namespace troupe
