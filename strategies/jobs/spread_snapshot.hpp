// SPDX-License-Identifier: Apache-2.0
// The snapshot that a job goes on from, where every process holds all variables.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/contexts/strategy.hpp"

#include <optional>

namespace troupe {

/// The snapshot of the first process, for all; nothing if that has none. So one process reads the
/// checkpoint, wherever its disk is, and none can go on from another. All processes have to make
/// the call; what others than the first one give does not count.
/// Cost: the first process sends all arrays to each of the others.
/// Errors: throws `failure`: wrong_context; malformed, if what comes is no snapshot; as
/// the collectives of the strategy's `reducer`.
[[nodiscard]] std::optional<job_snapshot> spread_snapshot(strategy& strategy,
                                                          const std::optional<job_snapshot>& own);

} // namespace troupe
