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

/// Processes with different options would draw other batches, or make other steps, and never
/// notice.
/// @returns The options that all processes must have alike: a line for each option that a file may
/// hold. Left out are places of files and, where there is a chief, options that concern the chief
/// or a process alone.
/// @param own Options of the program that each process may have its own of.
[[nodiscard]] std::string agreement_of(const command_options& all, const job_options& options,
                                       std::span<const std::string> own);

/// Without a chief that compares them, each process sends its options to the others. All processes
/// of the strategy have to make the call; one that is alone sends nothing.
/// Errors: throws `failure` with failed_precondition: which process's line differs from the
/// first one's, and how; as `cross_replica_context::exchanged`.
void check_same_options(strategy& strategy, const std::string& agreement);

} // namespace troupe
