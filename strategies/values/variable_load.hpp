// SPDX-License-Identifier: Apache-2.0
// What a variable weighs when parameter servers share the variables between them.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <functional>

namespace troupe {

/// The weight of a variable. Each goes to the parameter server that holds least by then, the first
/// of several. It is asked in every process, and must answer alike: finite, not negative.
/// Source: TensorFlow, `GreedyLoadBalancingStrategy`.
using variable_load = std::function<double(const shape& extents, dtype type)>;

/// 1 for each variable, so parameter servers take turns.
[[nodiscard]] variable_load equal_load();

/// The bytes of the variable. Slots and gradients are as many times that for each.
[[nodiscard]] variable_load byte_size_load();

} // namespace troupe
