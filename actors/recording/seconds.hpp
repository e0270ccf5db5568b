// SPDX-License-Identifier: Apache-2.0
// The conversion of a job's times to seconds.
#pragma once

#include "actors/recording/records.hpp"

#include <chrono>

namespace troupe {

/// A time in seconds, as people write it.
[[nodiscard]] inline double seconds(job_time time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace troupe
