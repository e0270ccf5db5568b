// SPDX-License-Identifier: Apache-2.0
// The gradients of a replica without input.
#include "strategies/jobs/join.hpp"

#include "kernels/tensor/change.hpp"

namespace troupe {

std::vector<gradient_and_variable> zero_gradients(std::span<const variable> variables) {
  std::vector<gradient_and_variable> gradients;
  for (const auto& variable : variables)
    gradients.push_back({filled(variable.type(), variable.extents(), 0), variable});
  return gradients;
}

} // namespace troupe
