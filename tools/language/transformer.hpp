// SPDX-License-Identifier: Apache-2.0
// The logits of a transformer as operations on a tape.
#pragma once

#include "tools/language/language_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A step's inputs on its device. For each one that is empty, the step copies the input there.
struct placed_inputs {
  tensor contexts{};
  tensor next{};
  tensor keys{}; ///< A row for each dropout of the model.

  [[nodiscard]] tensor key(size_t dropout) const {
    if (keys.data() == nullptr) return {};
    auto row = static_cast<int64_t>(dropout);
    return keys.slice(row, row + 1);
  }
};

/// The key of each dropout: the embedding's, then of each layer those of its two sums.
[[nodiscard]] std::vector<random_key> transformer_dropout_keys(const language_model_config& config,
                                                               const random_key& key);

/// As `variables_of`. @pre The configuration is a transformer's, and valid.
[[nodiscard]] std::vector<model_variable>
transformer_variables(const language_model_config& config);

/// The number of variables of a transformer.
[[nodiscard]] constexpr size_t transformer_variable_count(const language_model_config& config) {
  return 4 + 12 * static_cast<size_t>(config.layers);
}

/// The logits of the byte after each position.
/// @param variables In the order of `transformer_variables`, with as many positions as the windows
/// have; with `config.recompute` they live until the last call of `gradients`.
/// Shape: contexts [windows, positions] i64 -> [windows * positions, 256]
template <class Context>
expression transformer_logits(basic_tape<Context>& t, const language_model_config& config,
                              std::span<const expression> variables, const tensor& contexts,
                              double dropout, const random_key& key, const placed_inputs& placed) {
  const auto windows = contexts.extents()[0], positions = contexts.extents()[1];
  const shape flat{windows * positions, config.width};
  auto norm = [&t](expression input, auto pair) { return t.layer_norm(input, pair[0], pair[1]); };
  auto linear = [&t](expression input, auto pair) { return t.linear(input, pair[0], pair[1]); };
  auto dropped = [&t, dropout, keys = transformer_dropout_keys(config, key),
                  placed](expression input, size_t index) {
    return t.dropout(input, dropout, keys[index], placed.key(index));
  };
  auto embedded = t.embedding(variables[0], contexts, placed.contexts);
  auto h = dropped(t.reshape(t.add_bias(embedded, variables[1]), flat), 0);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    auto own = variables.subspan(2 + 12 * static_cast<size_t>(layer), 12);
    auto first_sum = 1 + 2 * static_cast<size_t>(layer);
    auto write = [=, &t, heads = config.heads] {
      auto packed = linear(norm(h, own), own.subspan(2));
      auto attended
        = t.causal_self_attention(t.reshape(packed, {windows, positions, 3 * flat[1]}), heads);
      auto projected = linear(t.reshape(attended, flat), own.subspan(4));
      auto between = t.add(h, dropped(projected, first_sum));
      auto hidden = t.gelu(linear(norm(between, own.subspan(6)), own.subspan(8)));
      return t.add(between, dropped(linear(hidden, own.subspan(10)), first_sum + 1));
    };
    h = config.recompute ? t.recompute(write) : write();
  }
  return t.matmul(norm(h, variables.last(2)), variables[0], {.b = true});
}

} // namespace troupe
