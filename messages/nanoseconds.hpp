// SPDX-License-Identifier: Apache-2.0
// Lengths of time, as messages count them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe {

/// A negative length of time can only come from a clock that ran backwards; it counts as none.
[[nodiscard]] inline uint64_t to_count(std::chrono::nanoseconds length) {
  return static_cast<uint64_t>(std::max<int64_t>(length.count(), 0));
}

/// The longest one there is, where a message counts more.
[[nodiscard]] inline std::chrono::nanoseconds to_length(uint64_t count) {
  return std::chrono::nanoseconds{static_cast<int64_t>(std::min<uint64_t>(count, INT64_MAX))};
}

} // namespace troupe
