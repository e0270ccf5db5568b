// SPDX-License-Identifier: Apache-2.0
// How long replicas compute beside the time that they take.
#pragma once

#include "actors/recording/records.hpp"
#include "tools/options/job_options.hpp"

#include <cstdint>
#include <functional>

namespace troupe {

/// What the options add to a replica's computing: in real time, that of slow ones; in virtual time,
/// in which arithmetic takes none, all of it. As `training_options::pace`.
/// @pre `check(options, ...)` has a value. Thread: one at a time, if it is virtual time.
[[nodiscard]] std::function<job_time(uint32_t replica, uint64_t iteration, job_time elapsed)>
pace_of(const job_options& options);

} // namespace troupe
