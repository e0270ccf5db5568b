// SPDX-License-Identifier: Apache-2.0
// The work of one training step of the language model.
#pragma once

#include "tools/language/language_model.hpp"
#include "tools/model/training_step.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Which model learns what.
struct language_step_options {
  language_model_config model;
  uint64_t batch = 1;    ///< Examples.
  std::string_view text; ///< To draw them from; outlives the work.
};

/// Draws bytes of the text and differentiates the model's loss.
/// Errors, in the work: as `differentiate_on`.
[[nodiscard]] batch_work language_step(const language_step_options& options);

} // namespace troupe
