// SPDX-License-Identifier: Apache-2.0
// Means, errors, quantiles and comparisons.
#include "simulation/statistics.hpp"

#include "messages/assert.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace troupe {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (double value : values)
    sum += value;
  return values.empty() ? not_a_number : sum / static_cast<double>(values.size());
}

} // namespace

sorted_values::sorted_values(std::vector<double> values) : values_(std::move(values)) {
  std::ranges::sort(values_);
}

double sorted_values::quantile(double fraction) const {
  if (values_.empty()) return not_a_number;
  auto rank = std::ceil(fraction * static_cast<double>(values_.size()));
  auto last = static_cast<double>(values_.size() - 1);
  return values_[static_cast<size_t>(std::clamp(rank - 1, 0.0, last))];
}

estimate estimate_of(std::span<const double> values) {
  auto mean = mean_of(values);
  auto count = static_cast<double>(values.size());
  if (values.size() < 2) return {mean, not_a_number, values.size()};
  double squares = 0;
  for (double value : values)
    squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1) / count), values.size()};
}

std::vector<double> batch_means(std::span<const double> series, size_t count) {
  TROUPE_ASSERT(count > 0);
  if (series.size() <= count) return {series.begin(), series.end()};
  auto length = static_cast<double>(series.size()) / static_cast<double>(count);
  std::vector<double> means;
  for (size_t i = 0; i < count; ++i) {
    auto begin = static_cast<double>(i) * length;
    auto end = static_cast<double>(i + 1) * length;
    double sum = 0;
    for (auto k = static_cast<size_t>(begin); k < series.size() && static_cast<double>(k) < end;
         ++k) {
      auto first = std::max(begin, static_cast<double>(k));
      sum += (std::min(end, static_cast<double>(k + 1)) - first) * series[k];
    }
    means.push_back(sum / length);
  }
  return means;
}

estimate estimate_of_series(std::span<const double> series) {
  auto result = estimate_of(batch_means(series));
  return {mean_of(series), result.standard_error, series.size()};
}

quantile_range range_of_quantile(std::span<const std::vector<double>> runs,
                                 const sorted_values& sorted, double fraction, double repeats) {
  auto value = sorted.quantile(fraction);
  std::vector<double> shares; // of each batch, that are no longer
  for (const auto& run : runs) {
    std::vector<double> is_below;
    for (double one : run)
      is_below.push_back(one <= value ? 1 : 0);
    auto of_run = batch_means(is_below);
    shares.insert(shares.end(), of_run.begin(), of_run.end());
  }
  if (shares.size() < 2) return {not_a_number, not_a_number};
  auto count = static_cast<double>(sorted.values().size());
  auto least_error = std::sqrt(fraction * (1 - fraction) / count);
  auto error = std::sqrt(repeats) * std::max(estimate_of(shares).standard_error, least_error);
  auto half = student_quantile(shares.size() - 1) * error;
  // Without a value outside of the range, nothing bounds it there.
  auto low = fraction - half;
  auto high = fraction + half;
  auto is_one = sorted.quantile(0) == sorted.quantile(1);
  return {low * count < 1 && !is_one ? not_a_number : sorted.quantile(low),
          high >= 1 && !is_one ? not_a_number : sorted.quantile(high)};
}

double student_quantile(uint64_t degrees_of_freedom) {
  TROUPE_ASSERT(degrees_of_freedom > 0);
  constexpr double first[] = {12.7062047, 4.30265273, 3.18244631};
  if (degrees_of_freedom <= std::size(first)) return first[degrees_of_freedom - 1];
  constexpr double x = 1.959963985; // of the normal distribution
  auto power = [](int exponent) { return std::pow(x, exponent); };
  const double terms[] = {
    (power(3) + x) / 4,
    (5 * power(5) + 16 * power(3) + 3 * x) / 96,
    (3 * power(7) + 19 * power(5) + 17 * power(3) - 15 * x) / 384,
    (79 * power(9) + 776 * power(7) + 1482 * power(5) - 1920 * power(3) - 945 * x) / 92160,
  };
  double result = x;
  double divisor = 1;
  for (double term : terms)
    result += term / (divisor *= static_cast<double>(degrees_of_freedom));
  return result;
}

namespace {

// Of means that are known by so many values.
interval_estimate interval_of(double mean, double standard_error, uint64_t count) {
  auto half = count < 2 ? not_a_number : student_quantile(count - 1) * standard_error;
  return {mean, standard_error, mean - half, mean + half, count};
}

// Of `values[i] - factor * baseline[i]`.
estimate difference_of(std::span<const double> values, double factor,
                       std::span<const double> baseline) {
  TROUPE_ASSERT(values.size() == baseline.size(), values.size(), baseline.size());
  std::vector<double> differences;
  for (size_t i = 0; i < values.size(); ++i)
    differences.push_back(values[i] - factor * baseline[i]);
  return estimate_of(differences);
}

} // namespace

interval_estimate paired_difference(std::span<const double> values,
                                    std::span<const double> baseline) {
  auto [mean, standard_error, count] = difference_of(values, 1, baseline);
  return interval_of(mean, standard_error, count);
}

interval_estimate paired_share(std::span<const double> values, std::span<const double> baseline) {
  auto of_baseline = estimate_of(baseline).mean;
  auto share = estimate_of(values).mean / of_baseline;
  auto around = difference_of(values, share, baseline);
  return interval_of(share - 1, around.standard_error / of_baseline, around.count);
}

} // namespace troupe
