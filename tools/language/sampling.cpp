// SPDX-License-Identifier: Apache-2.0
// Draws bytes one after the other.
#include "tools/language/sampling.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe {

char chosen_byte(std::span<const double> logits, double temperature, double uniform) {
  TROUPE_ASSERT(!logits.empty() && logits.size() <= 256, logits.size());
  auto likeliest = std::ranges::max_element(logits);
  auto chosen = likeliest - logits.begin();
  if (temperature > 0) {
    std::vector<double> shares(logits.begin(), logits.end());
    double sum = 0;
    for (auto& share : shares)
      sum += share = std::exp((share - *likeliest) / temperature);
    // Rounding may leave a little of the number behind the last byte: then it is the likeliest.
    double left = uniform * sum;
    for (size_t byte = 0; byte < shares.size(); ++byte) {
      left -= shares[byte];
      if (left >= 0) continue;
      chosen = static_cast<ptrdiff_t>(byte);
      break;
    }
  }
  return static_cast<char>(static_cast<unsigned char>(chosen));
}

expected<void> sample_text(const language_model_config& config, std::span<const tensor> variables,
                           const sampling& settings, const std::function<void(char)>& on_byte) {
  std::string text{settings.prompt};
  random_stream stream{{settings.seed, "sample"}};
  for (uint64_t i = 0; i < settings.bytes; ++i) {
    auto logits = next_byte_logits(config, variables, text);
    if (!logits) return tl::unexpected(logits.error());
    auto is_number = [](double logit) { return std::isfinite(logit); };
    if (!std::ranges::all_of(*logits, is_number))
      return fail(errc::failed_precondition,
                  "the model guesses not-a-numbers: its training has diverged; train it with a "
                  "smaller --learning-rate");
    text += chosen_byte(*logits, settings.temperature, stream.uniform());
    on_byte(text.back());
  }
  return {};
}

} // namespace troupe
