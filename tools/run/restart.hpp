// SPDX-License-Identifier: Apache-2.0
// The folders of a job's attempts, when a launcher starts it again after a failure.
#pragma once

#include "messages/errc.hpp"
#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The folder of an attempt, and those of the attempts before it.
struct attempt_folders {
  std::string own;                  ///< Empty: a new one, named after the time.
  std::vector<std::string> earlier; ///< The newest first.
};

/// The folders of this attempt, as a launcher counts them that starts failed jobs again: that of
/// the first is `asked_for`, or named after the job; that of the second has a -2 behind it. Without
/// such a launcher there is no other attempt.
/// @param asked_for --run-dir; may be empty.
/// @param is_watched Whether an evaluator is to find it: then it is named after the job, too.
/// @param environment Has TROUPE_RESTART_COUNT; else, under a torchrun with restarts and if a
/// folder is asked for, TORCHELASTIC_RESTART_COUNT. Errors: invalid_argument if the count is no
/// number; failed_precondition if this is the first attempt, and an earlier job has left files in
/// the folder of a later one.
[[nodiscard]] expected<attempt_folders> find_attempt(const std::string& asked_for, bool is_watched,
                                                     const environment_reader& environment);

} // namespace troupe
