// SPDX-License-Identifier: Apache-2.0
// The conversions between a job's times and seconds.
#pragma once

#include "actors/recording/records.hpp"

#include <chrono>

namespace troupe {

/// A time in seconds, as people write it.
[[nodiscard]] inline double seconds(job_time time) {
  return std::chrono::duration<double>(time).count();
}

/// The time of so many seconds.
[[nodiscard]] inline job_time to_job_time(double seconds) {
  return std::chrono::duration_cast<job_time>(std::chrono::duration<double>{seconds});
}

} // namespace troupe
