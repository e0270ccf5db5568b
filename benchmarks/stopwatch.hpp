// SPDX-License-Identifier: Apache-2.0
// Measures times, and gives their medians and quantiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

using clock_type = std::chrono::steady_clock;

inline double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

/// The value that a `share` of the values do not exceed. @pre There is a value.
inline double quantile(std::vector<double> values, double share) {
  auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}
