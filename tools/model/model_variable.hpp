// SPDX-License-Identifier: Apache-2.0
// The variables that a model consists of, and their values before the first step.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A variable of a model, of f32.
struct model_variable {
  std::string name;
  shape extents;
  double deviation = 0;   ///< The first values are normal around 0 with this deviation.
  float constant = 0;     ///< The first value of all elements, if the deviation is 0.
  std::string drawn_as{}; ///< Names the draws of the normal values.
};

/// A variable before the first step.
struct initial_variable {
  std::string name;
  tensor value;
};

/// Draws the values of a model's variables; the same for the same seed.
[[nodiscard]] std::vector<initial_variable>
initial_values(std::span<const model_variable> variables, uint64_t seed);

/// The number of elements of all variables.
[[nodiscard]] int64_t element_count(std::span<const model_variable> variables);

} // namespace troupe
