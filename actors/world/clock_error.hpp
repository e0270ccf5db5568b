// SPDX-License-Identifier: Apache-2.0
// The error of a node's clock.
#pragma once

#include "actors/recording/records.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// The error of the clock by which a node measures its waits. Such a clock never goes back: it may
/// be ahead, and it may run too fast or too slow.
struct clock_error {
  job_time ahead{0}; ///< At `since`; not below 0.
  double rate = 1;   ///< Seconds that it counts in one; above 0.
  job_time since{0};

  /// The time that it shows at a time not before `since`.
  [[nodiscard]] job_time shown_at(job_time time) const {
    return time + ahead + scaled(time - since, rate - 1);
  }

  /// The time that passes while it counts so much.
  [[nodiscard]] job_time time_of(job_time counted) const { return scaled(counted, 1 / rate); }

  /// The time that it counts while so much passes.
  [[nodiscard]] job_time counted_in(job_time time) const { return scaled(time, rate); }

private:
  static job_time scaled(job_time time, double factor) {
    auto count = std::min(static_cast<double>(time.count()) * factor, 0x1p62);
    return job_time{static_cast<int64_t>(count)};
  }
};

} // namespace troupe
