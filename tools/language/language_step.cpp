// SPDX-License-Identifier: Apache-2.0
// A batch of a text, differentiated.
#include "tools/language/language_step.hpp"

namespace troupe {

batch_work language_step(const language_step_options& options) {
  return [options](compute_stream& on, std::span<const tensor> variables, const batch_draws& draws,
                   const differentiation& how) {
    auto batch = draw_batch(options.model, options.text, options.batch, draws.examples);
    return differentiate_on(on, options.model, variables, batch, draws.dropout, how);
  };
}

} // namespace troupe
