// SPDX-License-Identifier: Apache-2.0
// The steps of replicas that train a module of PyTorch.
#include "strategies/torch/torch_model.hpp"

namespace troupe {

namespace {

/// @param summed The number of examples that the loss is a sum over; 1: the loss is a mean.
template <class Optimizer>
step_function make_step(torch_modules model, module_loss loss, Optimizer optimizer,
                        uint32_t examples, uint32_t summed = 1) {
  check_given("torch_step", loss);
  return [=](replica_context& context) -> task<void> {
    auto computing = model.compute_gradients(context, loss);
    auto computed = co_await computing;
    context.report(computed.loss / summed, examples);
    auto applying = optimizer.apply_gradients(context, std::move(computed.gradients_and_variables));
    co_await applying;
  };
}

} // namespace

step_function torch_step(torch_modules model, module_loss loss, sync_replicas_optimizer optimizer,
                         uint32_t examples) {
  auto summed = optimizer.options().losses_are_sums ? examples : 1;
  return make_step(std::move(model), std::move(loss), std::move(optimizer), examples, summed);
}

step_function torch_step(torch_modules model, module_loss loss, optimizer optimizer,
                         uint32_t examples) {
  return make_step(std::move(model), std::move(loss), std::move(optimizer), examples);
}

step_function torch_step(torch_modules model, module_loss loss, optimizer optimizer,
                         uint32_t examples, gradient_buckets buckets) {
  check_given("torch_step", loss);
  return [=](replica_context& context) -> task<void> {
    auto marker = buckets.begin(context);
    auto take = [marker](const variable& variable, const gradient& final) {
      marker.ready(variable, final);
    };
    auto computing = model.compute_gradients(context, loss, gradient_taker{take});
    auto value = co_await computing;
    context.report(value, examples);
    auto reducing = buckets.reduced(context);
    auto sums = co_await reducing;
    auto applying = optimizer.apply_reduced_gradients(context, std::move(sums));
    co_await applying;
  };
}

} // namespace troupe
