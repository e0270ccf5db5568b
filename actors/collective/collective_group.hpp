// SPDX-License-Identifier: Apache-2.0
// How the communicators of a group find each other.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "actors/world/world.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Which group a process joins. All its processes give the same.
struct collective_group_options {
  uint32_t size = 1;                ///< Processes.
  std::vector<std::string> names{}; ///< Name of each rank, for people; if missing: "worker:2".
  job_time deadline = std::chrono::seconds{60}; ///< For calls without their own.
};

/// A communicator's name in a placement: "communicator 0".
[[nodiscard]] std::string communicator_name(uint32_t rank);

/// Spawns the communicators of a group that stand in this process, each by its `communicator_name`,
/// and has them meet all others. Each process shows its own before it looks for others, so
/// it does not matter which comes first; calls that are made before all have come wait.
///
/// @param world, place Outlive the communicators, which end when they are sent an exit.
/// @returns By rank; null for those of other processes. A job of several processes has one here, a
/// simulation all.
/// Errors: as `placement::see`.
[[nodiscard]] expected<std::vector<communicator_actor>>
join_collective_group(world& world, placement& place, const collective_group_options& options);

} // namespace troupe
