// SPDX-License-Identifier: Apache-2.0
// Draws a batch of a text, and differentiates its loss.
#include "tools/language/language_step.hpp"

namespace troupe {

batch_work language_step(const language_step_options& options) {
  return [options](compute_stream& stream, std::span<const tensor> variables,
                   const batch_draws& draws, const differentiation& settings) {
    auto batch = draw_batch(options.model, options.text, options.batch, draws.examples);
    return differentiate_on(stream, options.model, variables, batch, draws.dropout, settings);
  };
}

} // namespace troupe
