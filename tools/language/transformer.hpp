// SPDX-License-Identifier: Apache-2.0
// The transformer as a computation on a tape.
#pragma once

#include "tools/language/language_model.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// How a pass through the model differs between training and evaluation.
struct transformer_pass {
  double dropout = 0;
  random_key key{0, "no dropout"}; ///< Names all masks of the pass.
};

/// As `variables_of`. @pre The configuration is a transformer's, and valid.
[[nodiscard]] std::vector<model_variable>
transformer_variables(const language_model_config& config);

/// How many there are.
[[nodiscard]] constexpr size_t transformer_variable_count(const language_model_config& config) {
  return 4 + 12 * static_cast<size_t>(config.layers);
}

/// The logits of the byte after each position.
/// @param variables As `transformer_variables` has them, of positions only those of the windows;
/// with `config.recompute` they live until the last call of `gradients`.
/// Shape: contexts [windows, positions] i64 -> [windows * positions, 256]
template <class Context>
expression transformer_logits(basic_tape<Context>& t, const language_model_config& config,
                              std::span<const expression> variables, const tensor& contexts,
                              const transformer_pass& how) {
  const auto windows = contexts.extents()[0], positions = contexts.extents()[1];
  const shape flat{windows * positions, config.width};
  auto norm = [&t](expression input, auto of) { return t.layer_norm(input, of[0], of[1]); };
  auto linear
    = [&t](expression input, auto of) { return t.add_bias(t.matmul(input, of[0]), of[1]); };
  auto thinned = [&t, how](expression input, const std::string& name) {
    return t.dropout(input, how.dropout, how.key.derive(name));
  };
  auto h = t.reshape(t.add_bias(t.embedding(variables[0], contexts), variables[1]), flat);
  h = thinned(h, "embedding");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto of = variables.subspan(2 + 12 * static_cast<size_t>(layer), 12);
    auto write = [=, &t, heads = config.heads, name = "layer_" + std::to_string(layer)] {
      auto packed = linear(norm(h, of), of.subspan(2));
      auto attended
        = t.causal_self_attention(t.reshape(packed, {windows, positions, 3 * flat[1]}), heads);
      auto projected = linear(t.reshape(attended, flat), of.subspan(4));
      auto between = t.add(h, thinned(projected, name + "/projection"));
      auto hidden = t.gelu(linear(norm(between, of.subspan(6)), of.subspan(8)));
      return t.add(between, thinned(linear(hidden, of.subspan(10)), name + "/output"));
    };
    h = config.recompute ? t.recompute(write) : write();
  }
  return t.matmul(norm(h, variables.last(2)), variables[0], {.b = true});
}

} // namespace troupe
