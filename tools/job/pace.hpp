// SPDX-License-Identifier: Apache-2.0
// How long replicas compute beside the time that they take.
#pragma once

#include "actors/recording/records.hpp"
#include "tools/options/job_options.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// The time that the options add to a replica's computing, as `training_options::pace`. In real
/// time, slow replicas get some; in virtual time, arithmetic takes none, so all of it is added.
/// @pre `check(options, ...)` has a value. Thread: one at a time, if it is virtual time.
[[nodiscard]] std::function<job_time(uint32_t replica, uint64_t iteration, job_time elapsed)>
pace_of(const job_options& options);

} // namespace troupe
