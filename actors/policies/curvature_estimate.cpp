// SPDX-License-Identifier: Apache-2.0
// Compares the losses of the two halves of a descent.
#include "actors/policies/curvature_estimate.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

std::optional<double> estimate_curvature(std::span<const descent_step> steps,
                                         double learning_rate) {
  TROUPE_ASSERT(learning_rate > 0, learning_rate);
  auto half = steps.size() / 2;
  if (half < 2) return std::nullopt;
  // The fall from each step to the one half of them later is made of the steps between.
  double unexplained = 0;
  double moved = 0;
  for (size_t i = 0; i < 2 * half; ++i) {
    auto sign = i < half ? -1 : 1;
    unexplained += sign * steps[i].loss / learning_rate;
    auto between = static_cast<double>(std::min(i + 1, 2 * half - 1 - i));
    unexplained += between * steps[i].squared_norm;
    moved += between * steps[i].squared_update;
  }
  auto curvature = 2 * unexplained / moved;
  return std::isfinite(curvature) ? std::optional{curvature} : std::nullopt;
}

} // namespace troupe
