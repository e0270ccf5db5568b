// SPDX-License-Identifier: Apache-2.0
// Clips the gradients of a replica before it pushes them, in the terms of tf.clip_by_*.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <vector>

namespace troupe {

// One batch in a thousand has a gradient a thousand times too long, and one such step undoes many
// good ones. These functions cut gradients of any floating type, of one replica, before they are
// averaged; `update_plan::clip` cuts the mean. They take the rows of a sparse gradient as they are
// given: rows of one index count one by one, as in TensorFlow.
//
// All throw `failure`: type_mismatch for a gradient that is not floating; invalid_argument for
// limits that make no sense. Results share memory with their arguments where nothing had to change.

/// Each element, or the nearer of the limits if it lies outside them; NaN stays NaN.
/// Source: tf.clip_by_value.
[[nodiscard]] gradient clip_by_value(const gradient& gradient, double low, double high);

/// The gradient, or the same direction with a norm of `norm_max` if its own is larger. An element
/// that is NaN makes all NaN; an infinite element makes finite ones 0, and others NaN. Source:
/// tf.clip_by_norm.
[[nodiscard]] gradient clip_by_norm(const gradient& gradient, double norm_max);

/// The Euclidean norm of all elements of all gradients together. Source: tf.linalg.global_norm.
[[nodiscard]] double global_norm(const std::vector<gradient>& gradients);

/// Gradients that were clipped together.
struct clipped_gradients {
  std::vector<gradient> gradients;
  double global_norm = 0; ///< The norm before the clip.
};

/// All gradients multiplied by one factor, so that their global norm is at most `norm_max`: steps
/// get shorter, and keep their direction. If the norm is not finite, all elements become NaN.
/// Source: tf.clip_by_global_norm; Pascanu et al., "On the difficulty of training recurrent neural
/// networks", 2013, algorithm 1.
[[nodiscard]] clipped_gradients clip_by_global_norm(const std::vector<gradient>& gradients,
                                                    double norm_max);

} // namespace troupe
