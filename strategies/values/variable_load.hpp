// SPDX-License-Identifier: Apache-2.0
// The weight of a variable when variables are shared between parameter servers.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <functional>

namespace troupe {

/// Returns the weight of a variable. Each variable goes to the parameter server that holds the
/// least weight by then, the first of several. It is called in every process, and must return the
/// same there: a finite number that is not negative.
/// Source: TensorFlow, `GreedyLoadBalancingStrategy`.
using variable_load = std::function<double(const shape& extents, dtype type)>;

/// Gives each variable the weight 1, so parameter servers take turns.
[[nodiscard]] variable_load equal_load();

/// The bytes of the variable. Slots and gradients are as many times that for each.
[[nodiscard]] variable_load byte_size_load();

} // namespace troupe
