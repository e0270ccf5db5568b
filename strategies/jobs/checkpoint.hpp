// SPDX-License-Identifier: Apache-2.0
// Saving and restoring the variables of a strategy between two runs.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/variables/sharded_variable.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Writes all variables of a strategy to "checkpoint-<step>.safetensors": values under their names,
/// slots under "<variable>/<slot>". Where copies are alike, the first is saved; where they are
/// synchronised on read, their combined value is: so it does not matter how many replicas go on
/// from it, under which strategy. A strategy that is not to checkpoint
/// (`extended().should_checkpoint()`) writes nothing.
/// @param step Updates made so far: names the file.
/// @param sharded Shards that are saved as the one array that they are, so that it may go on in
/// another number of them. Slots and averages are saved if all shards have those of one optimizer.
/// Errors: throws `failure`: wrong_context; resource if the file cannot be written.
void save_checkpoint(strategy& strategy, const std::filesystem::path& folder, uint64_t step,
                     std::span<const sharded_variable> sharded = {});

/// Puts the variables back to where the newest whole checkpoint of a folder has them. Copies get
/// the same value; those that add up share it. The saved state of a variable that there is not
/// yet waits: a variable made later under its name, also in shards by `sharded_variable::make`,
/// begins with it, slots and all (`strategy_extended::deferred`). An optimizer in use goes on with
/// slots and average of its own: the restored ones, or else new ones.
/// @param sharded Shards that get their rows of the array that was saved.
/// @returns The step that it was saved under; nothing if there is no checkpoint. Newer ones that
/// are damaged are passed over, with a warning on standard error.
/// Errors: throws `failure`: wrong_context; malformed if there are checkpoints and none is whole;
/// not_found if a variable is not in it; type_mismatch and invalid_argument if one has changed its
/// form; as `find_checkpoint`. Then no variable is changed but those before the one at fault.
[[nodiscard]] std::optional<uint64_t>
restore_checkpoint(strategy& strategy, const std::filesystem::path& folder,
                   std::span<const sharded_variable> sharded = {});

/// Gives variables the arrays that a safetensors file has under their names, whichever program
/// wrote it: the weights of a model, as PyTorch saves them. Narrower numbers become those of the
/// variable: bf16 and f16 f32, all of them f64. Slots stay as they are.
/// @returns The names of the arrays that are none of these variables'.
/// Errors: throws `failure`: wrong_context; not_found for a variable that is not in the file;
/// invalid_argument for one of another shape there; type_mismatch for numbers that the variable
/// cannot hold all of; as `read_safetensors`. Then no variable is changed.
std::vector<std::string> load_variables(strategy& strategy, const std::filesystem::path& file,
                                        std::span<const variable> variables);

/// The snapshot that `save_checkpoint` writes. All processes have to make the call if copies of
/// variables are to be combined. Errors: throws `failure` with wrong_context.
[[nodiscard]] job_snapshot take_snapshot(strategy& strategy, uint64_t step,
                                         std::span<const sharded_variable> sharded = {});

/// Puts the variables back to where a snapshot has them. Errors: as `restore_checkpoint`.
void restore_snapshot(strategy& strategy, const job_snapshot& from,
                      std::span<const sharded_variable> sharded = {});

} // namespace troupe
