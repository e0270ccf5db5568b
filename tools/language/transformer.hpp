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

/// A linear layer, or a norm, takes two variables: these are handed out in order.
class variables_in_order {
public:
  explicit variables_in_order(std::span<const expression> all) : rest_(all) {}

  expression next() {
    auto first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }

private:
  std::span<const expression> rest_;
};

/// The logits of the byte after each position.
/// @param variables As `transformer_variables` has them, of positions only those of the windows.
/// Shape: contexts [windows, positions] i64 -> [windows * positions, 256]
template <class Context>
expression transformer_logits(basic_tape<Context>& t, const language_model_config& config,
                              std::span<const expression> variables, const tensor& contexts,
                              const transformer_pass& how) {
  const auto windows = contexts.extents()[0], positions = contexts.extents()[1];
  const shape flat{windows * positions, config.width};
  variables_in_order given{variables};
  auto norm = [&](expression input) {
    auto gain = given.next();
    return t.layer_norm(input, gain, given.next());
  };
  auto linear = [&](expression input) {
    auto weights = given.next();
    return t.add_bias(t.matmul(input, weights), given.next());
  };
  auto thinned = [&](expression input, const std::string& name) {
    return t.dropout(input, how.dropout, how.key.derive(name));
  };
  auto table = given.next();
  auto h = t.reshape(t.add_bias(t.embedding(table, contexts), given.next()), flat);
  h = thinned(h, "embedding");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto name = "layer_" + std::to_string(layer);
    auto packed = t.reshape(linear(norm(h)), {windows, positions, 3 * config.width});
    auto attended = t.reshape(t.causal_self_attention(packed, config.heads), flat);
    h = t.add(h, thinned(linear(attended), name + "/projection"));
    auto hidden = t.gelu(linear(norm(h)));
    h = t.add(h, thinned(linear(hidden), name + "/output"));
  }
  return t.matmul(norm(h), table, {.b = true});
}

} // namespace troupe
