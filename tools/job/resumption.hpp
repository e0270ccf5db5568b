// SPDX-License-Identifier: Apache-2.0
// The checkpoint that a job resumes from.
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
/// @param named Names the folder in errors: "--resume runs/one".
/// Errors: not_found if there is none; as `find_checkpoint`, but returned.
[[nodiscard]] expected<found_checkpoint> newest_checkpoint(std::string_view program,
                                                           const std::filesystem::path& run,
                                                           std::string_view named);

/// The beginning of a job: new, or a checkpoint of an earlier run.
struct job_beginning {
  std::string folder; ///< Folder of the run that it resumes; empty: the job is new.
  std::optional<job_snapshot> resume;
};

/// A job that is started again resumes the last of its attempts that has saved a checkpoint.
/// Without one, it resumes the run that was asked for, if any.
/// @param asked_for As --resume says; may be empty. @param steps Updates of the whole job.
/// Errors: not_found if there is no whole checkpoint; failed_precondition if it does not fit;
/// invalid_argument if it has made all `steps` already. The line names the folder.
[[nodiscard]] expected<job_beginning> find_beginning(std::string_view program,
                                                     const std::string& asked_for,
                                                     const attempt_folders& attempts,
                                                     const job_subject& subject, uint64_t steps);

/// Copies the checkpoint that a job begins with into its own folder, so that the folder can be
/// resumed from the first moment. A checkpoint appears there as a whole.
void hand_over_checkpoint(const job_beginning& beginning, const std::filesystem::path& checkpoints);

} // namespace troupe
