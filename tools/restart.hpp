// SPDX-License-Identifier: Apache-2.0
// A job that is started again after it has failed: where its attempts leave what they have.
#pragma once

#include "messages/errc.hpp"
#include "strategies/cluster/environment.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// How often the job was started before, by a launcher that starts failed jobs again; nothing if
/// there is no such launcher.
/// Errors: invalid_argument if TROUPE_RESTART_COUNT is no number.
[[nodiscard]] expected<std::optional<uint32_t>>
restart_count(const environment_reader& environment);

/// The run folder of the job, if none was asked for: the same in every attempt.
[[nodiscard]] std::string restartable_folder(const environment_reader& environment);

/// The run folder of this attempt, where an evaluator is to find it: what was asked for, or one
/// that is named after the job; empty if the job has no name.
/// @param asked_for --run-dir; may be empty. Errors: as `restart_count`.
[[nodiscard]] expected<std::string> watched_folder(const std::string& asked_for,
                                                   const environment_reader& environment);

/// The folder of one attempt: that of the first is `base`, that of the second `base`-2.
[[nodiscard]] std::string attempt_folder(const std::string& base, uint32_t restarts);

/// Those of all attempts before it, the newest first.
[[nodiscard]] std::vector<std::string> earlier_attempts(const std::string& base, uint32_t restarts);

} // namespace troupe
