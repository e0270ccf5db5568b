// SPDX-License-Identifier: Apache-2.0
// Snapshots between the processes of a group.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/contexts/strategy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The snapshots of all processes that run replicas of a strategy, by rank; nothing for a process
/// that gives none. All processes have to make the call, and all get them. @param purpose Tells
/// calls apart, and errors what they were for; the same in all processes.
/// Cost: every process sends its arrays to each of the others.
/// Errors: throws `failure`: wrong_context; malformed, if what comes is no snapshot; as
/// the collectives of the strategy's `reducer`.
[[nodiscard]] std::vector<std::optional<job_snapshot>>
gather_snapshots(strategy& strategy, const std::string& purpose,
                 const std::optional<job_snapshot>& own);

/// The snapshot of the first process, for all; nothing if that has none. So one process reads the
/// checkpoint, wherever its disk is, and none can go on from another. All processes have to make
/// the call; what others than the first one give does not count.
/// Cost: the first process sends all arrays to each of the others.
/// Errors: as `gather_snapshots`.
[[nodiscard]] std::optional<job_snapshot> spread_snapshot(strategy& strategy,
                                                          const std::optional<job_snapshot>& own);

} // namespace troupe
