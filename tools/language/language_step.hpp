// SPDX-License-Identifier: Apache-2.0
// What a replica of the language model does in a step.
#pragma once

#include "strategies/jobs/training.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "tools/language/language_model.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

/// Which model learns what.
struct language_step_options {
  language_model_config model;
  uint64_t batch = 1;    ///< Examples.
  std::string_view text; ///< To draw them from; outlives the job.
};

/// Reads the variables, computes their gradients for a batch of its own on the replica's device,
/// and hands them to the optimizer.
/// @param variables As `initial_variables` has them.
[[nodiscard]] step_function language_step(language_step_options options,
                                          sync_replicas_optimizer optimizer,
                                          std::vector<variable> variables);

/// The same, where replicas meet.
[[nodiscard]] step_function language_step(language_step_options options, optimizer optimizer,
                                          std::vector<variable> variables);

} // namespace troupe
