// SPDX-License-Identifier: Apache-2.0
// The time that options add to the computing of replicas.
#pragma once

#include "actors/recording/records.hpp"
#include "tools/options/job_options.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// The time that the options add to a replica's computing, as `training_options::pace`. In real
/// time, it slows the slow replicas down. In virtual time, where arithmetic takes no time, it is
/// all of the computing time.
/// @pre `check(options, ...)` has a value. Thread: one at a time in virtual time.
[[nodiscard]] std::function<job_time(uint32_t replica, uint64_t iteration, job_time elapsed)>
pace_of(const job_options& options);

} // namespace troupe
