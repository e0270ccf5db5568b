// SPDX-License-Identifier: Apache-2.0
// Estimates how curved the loss is from how it fell.
#pragma once

#include <optional>
#include <span>

namespace troupe {

/// One step down the loss.
struct descent_step {
  double loss = 0;           ///< Where its gradients were computed; an estimate from their batches.
  double squared_norm = 0;   ///< The expected gradient's; unbiased, so it may be below 0.
  double squared_update = 0; ///< Squared norm of the mean gradient, that the update went along.
};

/// Learning rate times the Lipschitz constant of the gradient, from consecutive steps of plain
/// gradient descent: to the second order a step of rate r changes the loss by
///
///     -r squared_norm + (r c / 2) squared_update
///
/// which gives c. Single losses are noisy, so those of the second half of the steps are compared
/// with those of the first.
/// @param learning_rate Above 0.
/// @returns Nothing, if there are fewer than four steps or they went nowhere; any number, if the
/// losses are all noise. Source: after Xu, Neglia and Sebastianelli, section 3.3, who compare two
/// losses.
[[nodiscard]] std::optional<double> estimate_curvature(std::span<const descent_step> steps,
                                                       double learning_rate);

} // namespace troupe
