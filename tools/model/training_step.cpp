// SPDX-License-Identifier: Apache-2.0
// Reads variables, computes gradients with or without a loss scale, and applies them.
#include "tools/model/training_step.hpp"

#include "strategies/optimizers/loss_scale.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

// Holds no value of a variable at its end: an owner changes one in place if no reader holds it.
task<step_on_stream> compute_batch(replica_context& context, batch_work compute,
                                   std::vector<variable> variables, product_precision precision,
                                   std::optional<double> loss_scale = {}) {
  auto reading = context.read_on_device(std::move(variables));
  auto values = co_await reading;
  const batch_draws draws{context.random("batch"), context.random("dropout")};
  auto work = [compute = std::move(compute), values = std::move(values), draws, precision,
               loss_scale](std::stop_token stop, compute_stream& stream) {
    return compute(stream, values, draws,
                   {.stop = std::move(stop), .precision = precision, .loss_scale = loss_scale});
  };
  auto computing = context.compute(std::move(work));
  auto result = co_await computing;
  co_return value_or_throw(std::move(result));
}

constexpr const char* kept_scale = "loss scale";

// Computes a batch with a loss scale that leaves the gradients finite.
task<step_on_stream> compute_scaled_batch(replica_context& context, batch_work compute,
                                          std::vector<variable> variables,
                                          product_precision precision) {
  auto scale = loss_scale::dynamic();
  if (auto kept = context.kept(kept_scale)) scale.restore(to_loss_scale_state(*kept));
  for (;;) {
    const auto tried = scale.value();
    auto computing = compute_batch(context, compute, variables, precision, tried);
    auto computed = co_await computing;
    const auto is_finite = computed.non_finite.values<double>()[0] == 0;
    scale.update(is_finite);
    context.keep(kept_scale, to_tensor(scale.state()));
    if (is_finite) co_return computed;
    if (scale.value() == tried)
      throw failure{{errc::failed_precondition,
                     "products of f16: gradients are not finite even without a loss scale; take "
                     "bf16, which holds larger numbers, or a lower learning rate"}};
  }
}

} // namespace

step_function training_step(batch_work work, uint32_t examples, job_optimizer optimizer,
                            std::vector<variable> variables, product_precision precision) {
  return [compute = std::move(work), examples, optimizer = std::move(optimizer),
          variables = std::move(variables), precision](replica_context& context) -> task<void> {
    auto computing = precision == product_precision::f16
                       ? compute_scaled_batch(context, compute, variables, precision)
                       : compute_batch(context, compute, variables, precision);
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
