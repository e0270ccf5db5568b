// SPDX-License-Identifier: Apache-2.0
// Counting values in TensorBoard's buckets.
#include "actors/recording/value_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {

namespace {

// From 1e-12 to 1e20 on both sides of 0, and to the ends of all numbers.
std::vector<double> make_limits() {
  std::vector<double> limits{1e-12};
  while (limits.back() * 1.1 < 1e20)
    limits.push_back(limits.back() * 1.1);
  limits.push_back(std::numeric_limits<double>::max());
  auto all = limits;
  std::ranges::reverse(all);
  for (auto& limit : all)
    limit = -limit;
  all.push_back(0);
  all.insert(all.end(), limits.begin(), limits.end());
  return all;
}

const std::vector<double>& limits() {
  static const auto all = make_limits();
  return all;
}

void add(value_histogram& histogram, std::vector<double>& counts, double value) {
  histogram.min = histogram.count == 0 ? value : std::min(histogram.min, value);
  histogram.max = histogram.count == 0 ? value : std::max(histogram.max, value);
  histogram.count += 1;
  histogram.sum += value;
  histogram.sum_of_squares += value * value;
  const auto above = std::ranges::upper_bound(limits(), value) - limits().begin();
  // The largest number of all has no limit above it.
  counts[std::min(static_cast<size_t>(above), counts.size() - 1)] += 1;
}

} // namespace

value_histogram histogram_of(std::span<const double> values) {
  value_histogram histogram;
  std::vector<double> counts(limits().size());
  for (double value : values)
    if (std::isfinite(value)) add(histogram, counts, value);
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool extends_empty_run = counts[i] == 0 && i > 0 && counts[i - 1] == 0;
    if (extends_empty_run) {
      histogram.upper_limits.back() = limits()[i];
      continue;
    }
    histogram.upper_limits.push_back(limits()[i]);
    histogram.counts.push_back(counts[i]);
  }
  return histogram;
}

} // namespace troupe
