// SPDX-License-Identifier: Apache-2.0
// The variables that a model consists of, and their values before the first step.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A variable of a model: f32 everywhere.
struct model_variable {
  std::string name;
  shape extents;
  double deviation = 0;   ///< It begins with normal values of this deviation around 0; or
  float constant = 0;     ///< with this value everywhere, if the deviation is 0.
  std::string drawn_as{}; ///< Names the normal values' draws.
};

/// A variable before the first step.
struct initial_variable {
  std::string name;
  tensor value;
};

/// Draws the values of a model's variables; the same for the same seed.
[[nodiscard]] std::vector<initial_variable>
initial_values(std::span<const model_variable> variables, uint64_t seed);

/// Elements of all variables.
[[nodiscard]] int64_t element_count(std::span<const model_variable> variables);

} // namespace troupe
