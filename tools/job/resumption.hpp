// SPDX-License-Identifier: Apache-2.0
// What a job goes on with.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "tools/job/job_subject.hpp"
#include "tools/run/restart.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The newest whole checkpoint of a run; the program warns of damaged ones.
/// @param named What an error calls the folder: "--resume runs/one".
/// Errors: not_found if there is none; as `find_checkpoint`, but returned.
[[nodiscard]] expected<found_checkpoint> newest_checkpoint(std::string_view program,
                                                           const std::filesystem::path& run,
                                                           std::string_view named);

/// What a job begins with.
struct job_beginning {
  std::string folder; ///< Of the run that it goes on with; empty: it is a new one.
  std::optional<job_snapshot> resume;
};

/// A job that is started again goes on with what its last attempt that has saved anything has left,
/// any other with the run that was asked for, if one was.
/// @param asked_for As --resume says; may be empty. @param steps Updates of the whole job.
/// Errors: not_found if there is no whole checkpoint; failed_precondition if it does not fit;
/// invalid_argument if it has made all `steps` already. The line names the folder.
[[nodiscard]] expected<job_beginning> find_beginning(std::string_view program,
                                                     const std::string& asked_for,
                                                     const attempt_folders& attempts,
                                                     const job_subject& subject, uint64_t steps);

/// Copies the checkpoint that a job begins with into its own folder, so that this can be gone on
/// with from the first moment on. It shows no half of a checkpoint.
void hand_over_checkpoint(const job_beginning& beginning, const std::filesystem::path& checkpoints);

} // namespace troupe
