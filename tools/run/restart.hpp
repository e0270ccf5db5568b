// SPDX-License-Identifier: Apache-2.0
// Finds the folders of a job's attempts, where a launcher starts it again after a failure.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The folder of an attempt, and those of the attempts before it.
struct attempt_folders {
  std::string own;                  ///< Empty: a new one, named after the time.
  std::vector<std::string> earlier; ///< The newest first.
};

/// Finds the folders of this attempt and of those before it, as a launcher counts them that starts
/// failed jobs again. The folder of the first attempt is `run_dir`, or named after the job; that of
/// the second ends with -2. Without such a launcher there is one attempt.
/// @param run_dir As --run-dir says; may be empty.
/// @param is_watched Whether an evaluator looks for the folder: then it has the job's name, too.
/// @param environment Has TROUPE_RESTART_COUNT; else, under a torchrun with restarts and if there
/// is a `run_dir`, TORCHELASTIC_RESTART_COUNT. Errors: invalid_argument if the count is no number;
/// failed_precondition if this is the first attempt, and an earlier job has left files in the
/// folder of a later one.
[[nodiscard]] expected<attempt_folders> find_attempt(const std::string& run_dir, bool is_watched,
                                                     const environment_reader& environment);

} // namespace troupe
