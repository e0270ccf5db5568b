// SPDX-License-Identifier: Apache-2.0
// Reads the model and the notes in a run's checkpoints, and decides whether a job can use them.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/train_options.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The notes of a run's checkpoints: the fingerprint of its data, the part that is trained on, and
/// its model's description.
[[nodiscard]] std::map<std::string, std::string> notes_of(const learning_problem& problem);

/// The model's variables in a checkpoint, in the model's order.
/// Errors: failed_precondition if it is of another model. @param mend Ends the line.
[[nodiscard]] expected<std::vector<tensor>>
model_in(const found_checkpoint& found, const learned_model& model, std::string_view mend);

/// Whether an evaluator of this problem can evaluate a checkpoint.
/// Errors: failed_precondition if it is of other data, of another part of them, or of another
/// model.
[[nodiscard]] expected<void> can_evaluate(const found_checkpoint& found,
                                          const learning_problem& problem);

/// Whether a job can go on with a checkpoint.
/// Errors: failed_precondition if it is of other data, another part of them, another model, another
/// seed or another optimizer.
[[nodiscard]] expected<void> can_resume(const found_checkpoint& found, const train_options& options,
                                        const learning_problem& problem);

} // namespace troupe
