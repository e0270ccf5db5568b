// SPDX-License-Identifier: Apache-2.0
// Text that a language model writes: one byte after the other, each drawn from its guess.
#pragma once

#include "tools/language/language_model.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace troupe {

/// How to draw a text.
struct sampling {
  uint64_t bytes = 0;
  double temperature = 1; ///< Below 1, likely bytes become likelier; 0: always the likeliest.
  uint64_t seed = 1;
  std::string_view prompt{}; ///< Beginning of the text; not in `bytes`, nor told to `on_byte`.
};

/// The byte that `uniform`, a number within [0, 1), falls upon where each byte has its share of
/// exp(logit / temperature). @pre There are 1 to 256 logits.
[[nodiscard]] char chosen_byte(std::span<const double> logits, double temperature, double uniform);

/// Writes as many bytes as asked for. The same values and options give the same text.
/// @param on_byte Told of each byte as soon as it is drawn.
/// Cost: a forward pass over what the model sees for each byte.
/// Errors: as `next_byte_logits`.
[[nodiscard]] expected<void> sample_text(const language_model_config& config,
                                         std::span<const tensor> variables, const sampling& how,
                                         const std::function<void(char)>& on_byte);

} // namespace troupe
