// SPDX-License-Identifier: Apache-2.0
// Modules of PyTorch, one for each replica; their parameters are the variables of a strategy.
#pragma once

#include "kernels/tensor/random.hpp"
#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/contexts/strategy.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace at {
class Tensor;
} // namespace at

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace troupe {

/// The loss of a replica's batch. Called on a computing thread, for all replicas at once.
/// @param module The replica's own. @param batch Names the draws of this replica's iteration.
/// @returns A scalar that can be differentiated.
using module_loss = std::function<at::Tensor(torch::nn::Module& module, const random_key& batch)>;

/// The modules and variables of a `torch_model`, for modules of any type.
///
/// Each replica has a module of its own, made when it computes for the first time. For the time of
/// a computation its parameters are views of the variables' memory, and between two computations
/// they hold nothing; gradients are handed over as libtorch has left them. Nothing is copied.
///
/// libtorch uses one thread for each replica, so that results do not depend on the number of cores;
/// what it draws comes from a stream of the replica's iteration (`torch_draws`).
///
/// A cheap value; copies mean the same modules. Thread: any.
class torch_modules {
public:
  using module_maker = std::function<std::shared_ptr<torch::nn::Module>()>;

  /// Makes a variable for each parameter of a module, of its name ("layers.0.weight") and with its
  /// initial value; parameters that need no gradient become variables that are not trainable.
  /// @param owner Outlives the modules.
  /// @param make Called once here, and once for each replica, on its computing thread, one call
  /// after the other; makes equal modules.
  /// Errors: throws `failure`: invalid_argument if `make` is empty or returns null, for a module
  /// without parameters, and for a parameter that shares its elements with another or has gaps
  /// between them; type_mismatch for one that is not f32, f64, i32 or i64; unimplemented for one
  /// that is not dense or lies on a device; user_code with what libtorch says; as
  /// `strategy::make_variable`.
  torch_modules(strategy& owner, module_maker make);

  /// All variables, in the order in which the module names its parameters.
  [[nodiscard]] const std::vector<variable>& variables() const;

  /// The variables that are trained. `train` with a `sync_replicas_optimizer` is given these.
  [[nodiscard]] std::vector<variable> trained() const;

  /// As `compute_gradients` for a loss on a tape: the gradients of `trained()`, in its order, zeros
  /// where the loss does not depend on one.
  /// Errors: throws `failure`: invalid_argument for an empty loss, one that is no scalar or depends
  /// on no parameter, or if this replica's module has other parameters than the first one;
  /// failed_precondition if the computation wrote into a parameter; unimplemented if it wrote into
  /// a buffer, as batch normalisation does that tracks statistics; user_code with what libtorch
  /// says; cancelled if the gradient is wanted no more.
  [[nodiscard]] task<computed_gradients> compute_gradients(replica_context& context,
                                                           module_loss loss) const;

  /// The same gradients, each handed out as soon as it is final, those of the last layers first.
  /// @returns The loss. Errors: as above, and what `take` throws.
  [[nodiscard]] task<double> compute_gradients(replica_context& context, module_loss loss,
                                               gradient_taker take) const;

  /// Calls `measure` with a module that has these values, in evaluation mode and without gradients.
  /// @param values One for each of `variables()`, in order. Thread: any; one call after the other.
  /// Errors: throws `failure` with invalid_argument for values of other variables, and an empty
  /// function; with user_code, as libtorch says; what `measure` throws.
  [[nodiscard]] double evaluate(std::span<const tensor> values,
                                const std::function<double(torch::nn::Module&)>& measure) const;

private:
  struct shared_state;

  std::shared_ptr<shared_state> state_;
};

} // namespace troupe
