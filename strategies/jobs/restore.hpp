// SPDX-License-Identifier: Apache-2.0
// Puts a job back to where a snapshot has it.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"

#include <span>

namespace troupe {

/// Puts a strategy's variables, slots, averages and the world's clock back to where a snapshot has
/// them. @param variables The job trains them: they must be in the snapshot; others may be.
/// Errors: throws `failure` with failed_precondition if the snapshot is of other variables, another
/// optimizer or another seed; type_mismatch and invalid_argument if a variable has changed its
/// form.
void restore(strategy& strategy, const sync_replicas_optimizer& optimizer,
             std::span<const variable> variables, const job_snapshot& from);

/// Puts variables, whichever optimizer they go on with, and the world's clock back to where a
/// snapshot has them.
/// Errors: throws `failure` with failed_precondition if the snapshot is of another seed; as
/// `restore_snapshot`.
void restore(strategy& strategy, const job_snapshot& from);

} // namespace troupe
