// SPDX-License-Identifier: Apache-2.0
// Loss scaling: keeps small gradients of 16 bits from becoming 0.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// How a loss scale moves. Source of the defaults: Keras' LossScaleOptimizer.
struct loss_scale_options {
  double initial = 32768;          ///< 2^15.
  uint64_t growth_interval = 2000; ///< Finite steps in a row after which the scale grows.
  double growth_factor = 2;
  double backoff_factor = 0.5; ///< A step that was not finite multiplies the scale by this.
};

/// The state of a loss scale that has to be saved.
struct loss_scale_state {
  double scale = 1;
  uint64_t finite_steps = 0; ///< Finite steps in a row since the scale last moved.

  bool operator==(const loss_scale_state&) const = default;
};

/// The state as a tensor that a replica keeps (`replica_context::keep`). Shape: [2] f64
[[nodiscard]] tensor to_tensor(const loss_scale_state& state);

/// The state that was kept.
/// Errors: throws `failure` with invalid_argument for a tensor that is none.
[[nodiscard]] loss_scale_state to_loss_scale_state(const tensor& kept);

/// In f16 gradients below 6e-8 are 0, and most numbers above 65504 are never used. So the loss is
/// multiplied before it is differentiated, and the gradients divided by the same number after, in
/// f32:
///
///     auto [gradients, finite] = scale.unscale(gradients_of(scale.value() * loss));
///     scale.update(finite);
///     // not finite: the scale was too large; push no such gradient, compute it again
///
/// A dynamic scale is as large as the gradients allow: it grows after many finite steps, and falls,
/// down to 1, with each that is not. A value: each replica has its own, or all take one from
/// somewhere; the numbers that an optimizer sees do not depend on it, powers of 2 not even by
/// rounding. Thread: one at a time.
/// Source: Micikevicius et al., "Mixed precision training", 2018, section 3.2.
class loss_scale {
public:
  /// A scale that stays.
  /// Errors: throws `failure` with invalid_argument unless it is a positive number.
  [[nodiscard]] static loss_scale fixed(double scale);

  /// A scale that moves.
  /// Errors: throws `failure` with invalid_argument for options that would not let it.
  [[nodiscard]] static loss_scale dynamic(loss_scale_options options = {});

  /// The number to multiply the loss by.
  [[nodiscard]] double value() const { return state_.scale; }

  /// Gradients of the loss itself.
  struct unscaled {
    std::vector<gradient> gradients; ///< f64 if they were, else f32.
    bool is_finite = true;           ///< No element was infinite or NaN.
  };

  /// Divides gradients of any floating types by the scale.
  /// Errors: throws `failure` with type_mismatch for one that is not floating.
  [[nodiscard]] unscaled unscale(const std::vector<gradient>& gradients) const;

  /// Moves a dynamic scale after a step.
  void update(bool is_finite);

  [[nodiscard]] const loss_scale_state& state() const { return state_; }

  /// Goes on where `state` was taken. Errors: throws `failure` with invalid_argument unless the
  /// scale is a positive number.
  void restore(const loss_scale_state& state);

private:
  loss_scale(bool is_dynamic, loss_scale_options options);

  bool is_dynamic_;
  loss_scale_options options_;
  loss_scale_state state_;
};

/// True if no element of any gradient is infinite or NaN.
/// Errors: throws `failure` with type_mismatch for a gradient that is not floating.
[[nodiscard]] bool all_finite(const std::vector<gradient>& gradients);

} // namespace troupe
