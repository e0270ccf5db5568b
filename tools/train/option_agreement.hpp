// SPDX-License-Identifier: Apache-2.0
// Whether processes that run replicas together were told the same.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/train_options.hpp"

#include <string>

namespace troupe {

/// Processes that draw other batches, or make other steps, would train what was not asked for, and
/// never notice. @returns What they all must have been told, a line for each option, and what their
/// data are; where files lie may differ, and where there is a chief, what concerns it or the
/// process alone.
[[nodiscard]] std::string agreement_of(const train_options& options,
                                       const learning_problem& problem);

/// Each process tells the others what it was told, where there is no chief to compare it. All
/// processes of the strategy have to make the call; one that is alone says nothing.
/// Errors: throws `failure` with failed_precondition: which process's line differs from the
/// first one's, and how; as `cross_replica_context::exchanged`.
void check_same_options(strategy& strategy, const std::string& agreement);

} // namespace troupe
