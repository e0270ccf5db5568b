// SPDX-License-Identifier: Apache-2.0
// Has a language model write a text: each byte is drawn from the model's guess.
#pragma once

#include "tools/language/language_model.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace troupe {

/// Settings of a text to write.
struct sampling {
  uint64_t bytes = 0;
  double temperature = 1; ///< Below 1, likely bytes become likelier; 0: always the likeliest.
  uint64_t seed = 1;
  std::string_view prompt{}; ///< The beginning of the text, which `bytes` and `on_byte` leave out.
};

/// The byte that `uniform`, a number within [0, 1), selects if each byte has a share proportional
/// to exp(logit / temperature). @pre There are 1 to 256 logits.
[[nodiscard]] char chosen_byte(std::span<const double> logits, double temperature, double uniform);

/// Writes `settings.bytes` bytes. The same values and settings give the same text.
/// @param on_byte Called with each byte as soon as it is drawn.
/// Cost: a forward pass over what the model sees for each byte.
/// Errors: as `next_byte_logits`.
[[nodiscard]] expected<void> sample_text(const language_model_config& config,
                                         std::span<const tensor> variables,
                                         const sampling& settings,
                                         const std::function<void(char)>& on_byte);

} // namespace troupe
