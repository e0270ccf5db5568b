// SPDX-License-Identifier: Apache-2.0
// The whole state of a job between two steps.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/payload.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A variable by name, with all that its owner holds.
struct variable_snapshot {
  std::string name;
  variable_payload state;
};

/// A job at the moment when a step is closed and applied and its tokens are not out yet. Every
/// gradient in flight is stale then and every accumulator empty, so this is all there is: a job
/// that goes on from here makes the same steps as one that was never interrupted.
struct job_snapshot {
  uint64_t step = 0;            ///< Updates made.
  job_time time{0};             ///< On the world's clock.
  uint64_t seed = 0;            ///< The world's, of which random streams are made with iterations.
  std::vector<uint64_t> tokens; ///< Steps of those in the queue, from the head on.
  std::vector<variable_snapshot> variables;
  std::vector<replica_progress> replicas; ///< The replicas that were there, by index.
  std::vector<named_payload> backups;     ///< Estimates for dynamic backups (`backup_arrays.hpp`).
};

/// A replica that comes late, or back after its node was gone, begins another life: its iterations
/// count on from the next multiple of this.
inline constexpr uint64_t iterations_of_life = uint64_t{1} << 32;

/// The number of the last life that any replica has begun.
[[nodiscard]] inline uint32_t last_life(const job_snapshot& snapshot) {
  uint64_t last = 0;
  for (const auto& replica : snapshot.replicas)
    last = std::max(last, replica.iteration / iterations_of_life);
  return static_cast<uint32_t>(last);
}

} // namespace troupe
