// SPDX-License-Identifier: Apache-2.0
// Finds the checkpoint that a job resumes from.
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

/// Finds the newest whole checkpoint of a run; the program warns of damaged ones.
/// @param label Names the folder in errors: "--resume runs/one". @param end Only checkpoints of
/// fewer steps; nothing: of any.
/// Errors: not_found if no checkpoint is there; as `find_checkpoint`, but returned.
[[nodiscard]] expected<found_checkpoint> newest_checkpoint(std::string_view program,
                                                           const std::filesystem::path& run,
                                                           std::string_view label,
                                                           std::optional<uint64_t> end = {});

/// The beginning of a job: nothing, or a checkpoint of an earlier run.
struct job_beginning {
  std::string folder; ///< The folder of the run that the job resumes; empty: the job is new.
  std::optional<job_snapshot> resume;
};

/// Finds the beginning of a job. One that is started again resumes the last of its attempts that
/// has saved a checkpoint before its last step; without one, the run that --resume names. So a job
/// that was lost after its last step makes some steps again, and has its end. An attempt with
/// damaged checkpoints alone is passed over with a warning, but never for a beginning at step 0:
/// that would leave its progress behind.
/// @param resumed_run The folder that --resume names; may be empty. @param steps Updates of the
/// whole job. Errors: not_found if the resumed run has no checkpoint; malformed if its checkpoints,
/// or those of an attempt in a job without --resume, are all damaged; failed_precondition if the
/// checkpoint does not fit; invalid_argument if the resumed run has made all `steps` already, or a
/// checkpoint is no file; resource if a folder or a checkpoint cannot be read: it may be whole. The
/// line names the folder.
[[nodiscard]] expected<job_beginning> find_beginning(std::string_view program,
                                                     const std::string& resumed_run,
                                                     const attempt_folders& attempts,
                                                     const job_subject& subject, uint64_t steps);

/// Copies the checkpoint that a job begins with into its own folder, so that this run can be
/// resumed from the first moment. The checkpoint appears there as a whole.
void hand_over_checkpoint(const job_beginning& beginning, const std::filesystem::path& checkpoints);

} // namespace troupe
