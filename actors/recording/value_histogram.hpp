// SPDX-License-Identifier: Apache-2.0
// How values are distributed, in the buckets that TensorBoard draws.
#pragma once

#include <span>
#include <vector>

namespace troupe {

/// How many values lie where. Buckets grow by a tenth from one to the next, so that values of any
/// size are told apart to within 10 %; runs of empty buckets are one.
struct value_histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> upper_limits; ///< A bucket reaches from the limit before it to below its own.
  std::vector<double> counts;       ///< As many as limits.
};

/// Counts values; those that are not finite are left out.
/// Cost: for each value a search among 1550 limits.
/// Source: tensorflow/core/lib/histogram/histogram.cc.
[[nodiscard]] value_histogram histogram_of(std::span<const double> values);

} // namespace troupe
