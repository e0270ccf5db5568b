// SPDX-License-Identifier: Apache-2.0
// The work of one training step of the language model.
#pragma once

#include "tools/language/language_model.hpp"
#include "tools/model/training_step.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// A model and its training text.
struct language_step_options {
  language_model_config model;
  uint64_t batch = 1;    ///< Examples in a batch.
  std::string_view text; ///< The text to draw examples from; outlives the work.
};

/// Draws bytes of the text and differentiates the model's loss.
/// Errors, in the work: as `differentiate_on`.
[[nodiscard]] batch_work language_step(const language_step_options& options);

} // namespace troupe
