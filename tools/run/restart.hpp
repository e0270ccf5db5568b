// SPDX-License-Identifier: Apache-2.0
// A job that is started again after it has failed: where its attempts leave what they have.
#pragma once

#include "messages/errc.hpp"
#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Where an attempt leaves what it has, and where those before it have.
struct attempt_folders {
  std::string own;                  ///< Empty: a new one, named after the time.
  std::vector<std::string> earlier; ///< The newest first.
};

/// The folders of this attempt, as a launcher counts them that starts failed jobs again: that of
/// the first is `asked_for`, or named after the job; that of the second has a -2 behind it. Without
/// such a launcher there is no other attempt.
/// @param asked_for --run-dir; may be empty.
/// @param is_watched Whether an evaluator is to find it: then it is named after the job, too.
/// @param environment Has TROUPE_RESTART_COUNT; else, of a torchrun with restarts and where a
/// folder is asked for, TORCHELASTIC_RESTART_COUNT. Errors: invalid_argument if the count is no
/// number; failed_precondition if this is the first attempt, and the folder of a later one holds
/// something that an earlier job has left.
[[nodiscard]] expected<attempt_folders> find_attempt(const std::string& asked_for, bool is_watched,
                                                     const environment_reader& environment);

} // namespace troupe
