// SPDX-License-Identifier: Apache-2.0
// Times of a job as people write them.
#pragma once

#include "actors/recording/records.hpp"

#include <chrono>

namespace troupe {

[[nodiscard]] inline double seconds(job_time time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace troupe
