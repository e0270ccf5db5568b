// SPDX-License-Identifier: Apache-2.0
// The variables and the dropout keys of a transformer.
#include "tools/language/transformer.hpp"

#include "messages/errors/assert.hpp"

#include <cmath>
#include <string>

namespace troupe {

std::vector<model_variable> transformer_variables(const language_model_config& config) {
  TROUPE_ASSERT(config.kind == model_kind::transformer);
  constexpr double deviation = 0.02;
  // Each layer adds two sums to its input: the more sums, the less each adds.
  const auto deviation_of_sums = deviation / std::sqrt(2 * static_cast<double>(config.layers));
  const auto width = config.width;
  std::vector<model_variable> result;
  auto add_norm = [&](const std::string& name) {
    result.push_back({name + "/gain", {width}, 0, 1});
    result.push_back({name + "/bias", {width}});
  };
  auto add_linear = [&](const std::string& name, int64_t inputs, int64_t outputs, double spread) {
    result.push_back({name + "/weights", {inputs, outputs}, spread, 0, name});
    result.push_back({name + "/bias", {outputs}});
  };
  result.push_back({"embedding", {byte_values, width}, deviation, 0, "embedding"});
  result.push_back({"positions", {config.context, width}, deviation, 0, "positions"});
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

std::vector<random_key> transformer_dropout_keys(const language_model_config& config,
                                                 const random_key& key) {
  std::vector<random_key> keys{key.derive("embedding")};
  for (int64_t layer = 0; layer < config.layers; ++layer)
    for (const auto* sum : {"/projection", "/output"})
      keys.push_back(key.derive("layer_" + std::to_string(layer) + sum));
  return keys;
}

} // namespace troupe
