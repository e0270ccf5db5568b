// SPDX-License-Identifier: Apache-2.0
// The language model as the task of a simulation that learns.
#pragma once

#include "simulation/learning.hpp"
#include "tools/language/language_model.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe {

/// The text, the model, and the replicas that learn.
struct language_options {
  std::shared_ptr<const std::string> text; ///< Any bytes.
  uint64_t seed = 0;
  uint32_t replicas = 1;
  uint32_t batch = 32;   ///< Examples in a gradient.
  bool own_data = false; ///< Each replica has a part of the text for itself; else all share it.
  /// Small, and without dropout: a simulation computes every gradient of every replica.
  language_model_config model{.context = 4,
                              .embedding_size = 16,
                              .hidden_sizes = {64},
                              .embedding_dropout = 0,
                              .hidden_dropout = 0};
};

/// Makes the task. The last tenth of the text, or of each replica's part of it, is held out, and
/// losses are measured there. Units: bits per byte; nats for losses of batches. Errors:
/// invalid_argument, if the text is too short for that.
[[nodiscard]] expected<learning_task> language_task(const language_options& options);

} // namespace troupe
