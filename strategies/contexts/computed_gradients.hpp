// SPDX-License-Identifier: Apache-2.0
// Computes gradients of a loss on a replica.
#pragma once

#include "actors/gpu/differentiate.hpp"
#include "strategies/contexts/replica_context.hpp"

#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// A gradient and the variable that it is for. Rows may have i32 or i64 numbers; without dense
/// extents they are rows of the variable.
struct gradient_and_variable {
  troupe::gradient gradient;
  troupe::variable variable;
};

/// The results of `compute_gradients`.
struct computed_gradients {
  double loss = 0;
  std::vector<gradient_and_variable> gradients_and_variables; ///< One for each variable, in order.
};

/// A loss as a function of variables, written down on a tape. `variables` are parameters on the
/// tape, in the order in which the variables were given:
///
///     [=](auto& t, std::span<const expression> variables) { return t.mean(...); }
///
/// A loss for any tape, as this one, is computed on the replica's device. If that is a GPU, a loss
/// for a `tape&` alone is refused; without GPU support in Troupe, every loss is refused there. The
/// precision of the tape can be given with the loss:
///
///     auto step = optimizer.minimize(context, {loss, product_precision::bf16}, variables);
class loss_function {
public:
  /// Errors: throws `failure` with invalid_argument for an empty function.
  template <class Loss>

  requires std::is_invocable_r_v<expression, Loss&, tape&, std::span<const expression>>
  loss_function(Loss loss, // NOLINT(google-explicit-constructor)
                product_precision precision = product_precision::full)
    : on_host_(loss), precision_(precision) {
    check_given("a loss", on_host_);
#if TROUPE_CUDA
    if constexpr (std::is_invocable_r_v<expression, Loss&, cuda_tape&, std::span<const expression>>)
      on_gpu_ = std::move(loss);
#endif
  }

  /// The precision of the tape that the loss is computed on.
  [[nodiscard]] product_precision precision() const {
    return precision_;
  }

  /// Writes the loss down on a tape of the host.
  expression operator()(tape& host_tape, std::span<const expression> variables) const {
    return on_host_(host_tape, variables);
  }

  /// The loss and its gradients by the variables, on the device of a stream.
  /// Errors: as `differentiate_with`; failed_precondition, if the stream is a GPU's, and the loss
  /// is not for its tape.
  [[nodiscard]] expected<step_on_stream> differentiate(compute_stream& stream,
                                                       std::span<const tensor> variables,
                                                       const std::stop_token& stop,
                                                       double scale = 1) const;

private:
  std::function<expression(tape&, std::span<const expression>)> on_host_;
  cuda_loss on_gpu_;
  product_precision precision_;
};

/// The loss of a replica's batch and its gradients, computed where `context.compute` computes: a
/// gradient of a variable that lies on the replica's device stays there. Nothing is aggregated: a
/// clip of these gradients is a clip per replica.
/// @param grad_loss The gradient of the loss itself, by which all gradients are multiplied. The
/// loss is reported without it.
/// Errors: throws `failure`: as `loss_function::differentiate`; cancelled if the gradient is wanted
/// no more.
[[nodiscard]] task<computed_gradients> compute_gradients(replica_context& context,
                                                         loss_function loss,
                                                         std::vector<variable> variables,
                                                         double grad_loss = 1);

/// A function that is told of each final gradient. Thread: a computing one.
using gradient_taker = std::function<void(const variable& variable, const gradient& final)>;

/// Computes the same gradients, and hands each out as soon as it is final, the last layers first. A
/// GPU hands them out once all are final: where their variables lie, but rows on the host.
/// @returns The loss of this replica's batch.
/// Errors: as above, and what `take` throws.
[[nodiscard]] task<double> compute_gradients(replica_context& context, loss_function loss,
                                             std::vector<variable> variables, gradient_taker take);

} // namespace troupe
