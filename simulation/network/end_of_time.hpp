// SPDX-License-Identifier: Apache-2.0
// Sums and multiples of virtual times, cut before a clock would run over.
#pragma once

#include "actors/recording/records.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// No step may end later: clocks count no more than twice as much.
constexpr job_time time_max = job_time::max() / 2;

/// A later time; at the most the first at which no step may end, so that no clock runs over.
[[nodiscard]] constexpr job_time later(job_time at, job_time by) {
  constexpr auto beyond = time_max + job_time{1};
  return at >= beyond || by >= beyond - at ? beyond : at + by;
}

/// A length of time, so many times as long; at most about `time_max`.
[[nodiscard]] inline job_time scaled(job_time time, double factor) {
  auto nanoseconds = static_cast<double>(time.count()) * factor;
  return job_time{
    static_cast<int64_t>(std::min(nanoseconds, static_cast<double>(time_max.count())))};
}

} // namespace troupe
