// SPDX-License-Identifier: Apache-2.0
// Draws the values of variables before the first step.
#include "tools/model/model_variable.hpp"

#include "kernels/tensor/random.hpp"

#include <algorithm>

namespace troupe {

namespace {

tensor initial_value(const model_variable& variable, const random_key& key) {
  tensor result(dtype::f32, variable.extents);
  auto values = result.mutable_values<float>();
  std::ranges::fill(values, variable.constant);
  if (variable.deviation == 0) return result;
  random_stream stream{key.derive(variable.drawn_as)};
  for (auto& value : values)
    value = static_cast<float>(variable.deviation * stream.normal());
  return result;
}

} // namespace

std::vector<initial_variable> initial_values(std::span<const model_variable> variables,
                                             uint64_t seed) {
  const random_key key{seed, "initial variables"};
  std::vector<initial_variable> result;
  for (const auto& variable : variables)
    result.push_back({variable.name, initial_value(variable, key)});
  return result;
}

int64_t element_count(std::span<const model_variable> variables) {
  int64_t count = 0;
  for (const auto& variable : variables)
    count += variable.extents.element_count();
  return count;
}

} // namespace troupe
