// SPDX-License-Identifier: Apache-2.0
// The transformer's variables.
#include "tools/language/transformer.hpp"

#include "messages/assert.hpp"
#include "tools/language/normal_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

std::vector<initial_variable> transformer_variables(const language_model_config& config,
                                                    uint64_t seed) {
  TROUPE_ASSERT(config.kind == model_kind::transformer);
  constexpr double deviation = 0.02;
  // So many sums make the last layer's input: each adds less, the more there are.
  const auto deviation_of_sums = deviation / std::sqrt(2 * static_cast<double>(config.layers));
  const auto width = config.width;
  random_key key{seed, "initial variables"};
  std::vector<initial_variable> result;
  auto add = [&](std::string name, tensor value) {
    result.push_back({std::move(name), std::move(value)});
  };
  auto add_norm = [&](const std::string& name) {
    auto gain = zeros({width});
    std::ranges::fill(gain.mutable_values<float>(), 1.F);
    add(name + "/gain", gain);
    add(name + "/bias", zeros({width}));
  };
  auto add_linear = [&](const std::string& name, int64_t inputs, int64_t outputs, double spread) {
    add(name + "/weights", normal_tensor({inputs, outputs}, spread, key.derive(name)));
    add(name + "/bias", zeros({outputs}));
  };
  add("embedding", normal_tensor({byte_values, width}, deviation, key.derive("embedding")));
  add("positions", normal_tensor({config.context, width}, deviation, key.derive("positions")));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto name = "layer_" + std::to_string(layer);
    add_norm(name + "/attention_norm");
    add_linear(name + "/attention", width, 3 * width, deviation);
    add_linear(name + "/projection", width, width, deviation_of_sums);
    add_norm(name + "/hidden_norm");
    add_linear(name + "/hidden", width, 4 * width, deviation);
    add_linear(name + "/output", 4 * width, width, deviation_of_sums);
  }
  add_norm("norm");
  TROUPE_ASSERT(result.size() == transformer_variable_count(config), result.size());
  return result;
}

} // namespace troupe
