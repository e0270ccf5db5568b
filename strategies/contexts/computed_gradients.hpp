// SPDX-License-Identifier: Apache-2.0
// Gradients of a loss, computed on a replica.
#pragma once

#include "kernels/tape/tape.hpp"
#include "strategies/contexts/replica_context.hpp"

#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// A gradient and the variable that it is for. Rows may have i32 or i64 numbers; without dense
/// extents they are rows of the variable.
struct gradient_and_variable {
  troupe::gradient gradient;
  troupe::variable variable;
};

/// What `compute_gradients` computed.
struct computed_gradients {
  double loss = 0;
  std::vector<gradient_and_variable> gradients_and_variables; ///< One for each variable, in order.
};

/// A loss as a function of variables, written down on a tape.
/// @param variables Parameters on the tape, in the order in which the variables were given.
using loss_function = std::function<expression(tape&, std::span<const expression> variables)>;

/// The loss of a replica's batch and its gradients, computed where `context.compute` computes.
/// Nothing is aggregated: clipping these clips per replica.
/// @param grad_loss The gradient of the loss itself, by which all gradients are multiplied. The
/// loss is reported without it.
/// Errors: throws `failure`: those of the tape; cancelled if the gradient is wanted no more.
[[nodiscard]] task<computed_gradients> compute_gradients(replica_context& context,
                                                         loss_function loss,
                                                         std::vector<variable> variables,
                                                         double grad_loss = 1);

/// Told of a gradient that nothing more is added to. Thread: a computing one.
using gradient_taker = std::function<void(const variable& of, const gradient& final)>;

/// Likewise, but hands out each gradient as soon as it is final, those of the last layers first.
/// @returns The loss of this replica's batch.
/// Errors: as above, and what `take` throws.
[[nodiscard]] task<double> compute_gradients(replica_context& context, loss_function loss,
                                             std::vector<variable> variables, gradient_taker take);

} // namespace troupe
