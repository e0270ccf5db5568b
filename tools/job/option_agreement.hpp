// SPDX-License-Identifier: Apache-2.0
// Checks that processes that run replicas together have the same options.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/job_options.hpp"

#include <span>
#include <string>

namespace troupe {

/// Processes with different options would draw other batches, or make other steps, and never
/// notice.
/// @param own Options of the program that may differ between processes.
/// @returns The options that must be the same in all processes: a line for each option that a file
/// may hold, without places of files and, where there is a chief, options of single processes.
[[nodiscard]] std::string agreement_of(const command_options& all, const job_options& options,
                                       std::span<const std::string> own);

/// @param agreement As `agreement_of` gives it, with the line of the model and the data.
/// @returns The lines that a process compares with the chief's when they meet: its strategy, which
/// says how they go on, and the agreement, unless all processes compare that by
/// `check_same_options`.
[[nodiscard]] std::string agreement_on_meeting(strategy_kind strategy,
                                               const std::string& agreement);

/// Compares the options where no chief does: each process sends its own to the others. All
/// processes of the strategy make the call together; one that is alone sends nothing. Errors:
/// throws `failure` with failed_precondition: which process's line differs from the first one's,
/// and how; as the collectives of the strategy's `reducer`.
void check_same_options(strategy& strategy, const std::string& agreement);

} // namespace troupe
