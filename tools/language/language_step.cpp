// SPDX-License-Identifier: Apache-2.0
// The step itself, and how little there is to it.
#include "tools/language/language_step.hpp"

#include <utility>

namespace troupe {

namespace {

template <class Optimizer>
step_function make_step(language_step_options options, Optimizer optimizer,
                        std::vector<variable> variables) {
  return [options = std::move(options), optimizer = std::move(optimizer),
          variables = std::move(variables)](replica_context& context) -> task<void> {
    auto reading = context.read(variables);
    auto values = co_await reading;
    auto batch_key = context.random("batch");
    auto dropout_key = context.random("dropout");
    auto work = [=](std::stop_token stop, compute_stream& on) {
      auto batch = draw_batch(options.model, options.text, options.batch, batch_key);
      return differentiate_on(on, options.model, values, batch, dropout_key, stop);
    };
    auto computing = context.compute(std::move(work));
    auto result = co_await computing;
    auto computed = value_or_throw(std::move(result));
    context.report(computed.loss_in_nats(), static_cast<uint32_t>(options.batch));
    std::vector<gradient_and_variable> gradients;
    for (size_t i = 0; i < variables.size(); ++i)
      gradients.push_back({std::move(computed.gradients[i]), variables[i]});
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
}

} // namespace

step_function language_step(language_step_options options, sync_replicas_optimizer optimizer,
                            std::vector<variable> variables) {
  return make_step(std::move(options), std::move(optimizer), std::move(variables));
}

step_function language_step(language_step_options options, optimizer optimizer,
                            std::vector<variable> variables) {
  return make_step(std::move(options), std::move(optimizer), std::move(variables));
}

} // namespace troupe
