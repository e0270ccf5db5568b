// SPDX-License-Identifier: Apache-2.0
// Makes a step without arithmetic.
#include "tools/job/waiting_step.hpp"

#include "strategies/jobs/join.hpp"

#include <stop_token>
#include <utility>

namespace troupe {

step_function waiting_step(job_optimizer optimizer, std::vector<variable> variables) {
  return [optimizer = std::move(optimizer),
          variables = std::move(variables)](replica_context& context) -> task<void> {
    auto reading = context.read(variables);
    auto values = co_await reading;
    auto computing = context.compute([](std::stop_token) { return 0; });
    co_await computing;
    auto gradients = zero_gradients(variables);
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
}

} // namespace troupe
