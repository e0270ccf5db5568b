// SPDX-License-Identifier: Apache-2.0
// Whether processes that run replicas together were told the same.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/job_options.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Processes that draw other batches, or make other steps, would train what was not asked for, and
/// never notice. @returns What they all must have been told, a line for each option that a file may
/// hold; where files lie may differ, and where there is a chief, what concerns it or the process
/// alone.
/// @param own Options of the program that may differ, too.
[[nodiscard]] std::string agreement_of(const command_options& all, const job_options& options,
                                       std::span<const std::string> own);

/// Each process tells the others what it was told, where there is no chief to compare it. All
/// processes of the strategy have to make the call; one that is alone says nothing.
/// Errors: throws `failure` with failed_precondition: which process's line differs from the
/// first one's, and how; as `cross_replica_context::exchanged`.
void check_same_options(strategy& strategy, const std::string& agreement);

} // namespace troupe
