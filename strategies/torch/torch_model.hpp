// SPDX-License-Identifier: Apache-2.0
// Training a module of PyTorch: libtorch computes its loss and gradients, Troupe does the rest.
#pragma once

#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/jobs/training_session.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "strategies/torch/torch_modules.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace troupe {

/// People have their models as modules of PyTorch. One of these makes a module for each replica,
/// and its parameters variables, so that any strategy and any optimizer trains it:
///
///     torch_model<net> model{strategy, [] { return std::make_shared<net>(); }};
///     auto loss = [](net& own, const random_key& batch) { return own.loss_of(draw(batch)); };
///     auto step = torch_step(model, model.loss(loss), optimizer, 32);
///     train(strategy, optimizer, step, {.steps = 1000});
///
/// @tparam Module Derived from `torch::nn::Module`. Include its header; this one includes nothing
/// of libtorch.
template <class Module>
class torch_model : public torch_modules {
public:
  /// Errors: as `torch_modules`.
  torch_model(strategy& owner, std::function<std::shared_ptr<Module>()> make)
    : torch_modules(owner, std::move(make)) {}

  /// A loss of modules of this type, as steps and `compute_gradients` take it.
  /// @param function As `module_loss`, but for `Module&`.
  /// Errors: throws `failure` with invalid_argument if it is empty.
  template <class Loss>
  [[nodiscard]] module_loss loss(Loss function) const {
    check_given("a loss", function);
    return [function = std::move(function)](torch::nn::Module& module, const random_key& batch) {
      return function(dynamic_cast<Module&>(module), batch);
    };
  }

  /// As `torch_modules::evaluate`. @param measure `double(Module&)`.
  template <class Measure>
  [[nodiscard]] double evaluate(std::span<const tensor> values, const Measure& measure) const {
    check_given("evaluate", measure);
    return torch_modules::evaluate(
      values, [&](torch::nn::Module& module) { return measure(dynamic_cast<Module&>(module)); });
  }
};

/// The step of a replica in a job: computes the gradients of its batch, reports the loss, and hands
/// the gradients to the optimizer.
/// @param examples In a replica's batch.
/// Errors: throws `failure` with invalid_argument for an empty loss. The step's errors are as of
/// `torch_modules::compute_gradients` and `apply_gradients`.
[[nodiscard]] step_function torch_step(torch_modules model, module_loss loss,
                                       sync_replicas_optimizer optimizer, uint32_t examples);

/// The step where replicas meet. Errors: as above.
[[nodiscard]] step_function torch_step(torch_modules model, module_loss loss, optimizer optimizer,
                                       uint32_t examples);

/// The step where replicas meet, and gradients are combined while others are still computed.
/// @param buckets For the variables `model.trained()`. Errors: as above.
[[nodiscard]] step_function torch_step(torch_modules model, module_loss loss, optimizer optimizer,
                                       uint32_t examples, gradient_buckets buckets);

} // namespace troupe
