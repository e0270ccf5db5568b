// SPDX-License-Identifier: Apache-2.0
// How long replicas compute, in a simulation.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe {

/// The time that a replica's n-th gradient takes. The same arguments give the same time in every
/// run, so that two scenarios that differ in one option are compared on the same draws.
using computing_time = std::function<job_time(uint32_t replica, uint64_t iteration)>;

/// Every gradient takes the same time.
[[nodiscard]] computing_time constant_time(job_time time);

/// Independent exponential times. @param mean Above 0. @param seed Names the streams.
[[nodiscard]] computing_time exponential_time(job_time mean, uint64_t seed);

/// The times of a real run: `times[replica][iteration]`; a replica that runs out begins again.
/// A replica without times takes what the others take on average.
/// @pre At least one time is given.
[[nodiscard]] computing_time replayed_times(std::vector<std::vector<job_time>> times);

} // namespace troupe
