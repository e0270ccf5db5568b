// SPDX-License-Identifier: Apache-2.0
// What is saved of a run, and whether another one can go on with it.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/train_options.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What checkpoints of a run say beside its job.
[[nodiscard]] std::map<std::string, std::string> notes_of(const learning_problem& problem);

/// The model's variables in a checkpoint, in the model's order.
/// Errors: failed_precondition if it is of another model.
[[nodiscard]] expected<std::vector<tensor>> model_in(const found_checkpoint& found,
                                                     const learned_model& model);

/// The same, of a run that trains on the data of this problem.
/// Errors: failed_precondition also if it trains on other data.
[[nodiscard]] expected<std::vector<tensor>> model_in(const found_checkpoint& found,
                                                     const learning_problem& problem);

/// The newest whole checkpoint of a run; `command` warns of damaged ones.
/// @param named What an error calls the folder: "--resume runs/one".
/// Errors: not_found if there is none; as `find_checkpoint`, but returned.
[[nodiscard]] expected<found_checkpoint> newest_checkpoint(std::string_view command,
                                                           const std::filesystem::path& run,
                                                           std::string_view named);

/// The newest checkpoint of the run that `options.resume` names; nothing if it names none.
/// Errors: not_found if there is no whole one; failed_precondition if it is of other data or of
/// another model, or has made all `steps` already. The line names the folder.
[[nodiscard]] expected<std::optional<job_snapshot>>
find_resumed(const train_options& options, const learning_problem& problem, uint64_t steps);

} // namespace troupe
