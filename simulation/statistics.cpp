// SPDX-License-Identifier: Apache-2.0
// Means with their errors, quantiles, and comparisons in pairs.
#include "simulation/statistics.hpp"

#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
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

std::vector<double> all_of(const batches_of_runs& runs) {
  std::vector<double> all;
  for (const auto& run : runs)
    all.insert(all.end(), run.begin(), run.end());
  return all;
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

namespace {

mean_error error_of_independent(std::span<const double> values) {
  return {estimate_of(values).standard_error, std::max<size_t>(values.size(), 1) - 1};
}

// The correlation of neighbours; 0 if values differ by rounding alone.
double neighbour_correlation(std::span<const double> values) {
  auto mean = mean_of(values);
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  constexpr double rounding = 1e-12;
  auto least = static_cast<double>(values.size()) * std::pow(rounding * mean, 2);
  return squares > least ? products / squares : 0;
}

// The error of a run whose short batches surely depend on each other; nothing if they may not.
std::optional<mean_error> error_of_dependent(std::span<const double> batches) {
  constexpr double correlation_max = 0.95;
  auto count = static_cast<double>(batches.size());
  auto seen = neighbour_correlation(batches);
  if (batches.size() < 2 || seen <= 2 / std::sqrt(count)) return std::nullopt;
  auto bias = (1 + 3 * seen) / count;
  auto correlation = std::min(seen + bias + std::sqrt((1 - seen * seen) / count), correlation_max);
  auto growth = (1 + correlation) / (1 - correlation);
  auto freedom = static_cast<uint64_t>(std::max(count / growth - 1, 1.0));
  return mean_error{estimate_of(batches).standard_error * std::sqrt(growth), freedom, true};
}

} // namespace

bool are_alike(const batches_of_runs& one, const batches_of_runs& other) {
  return std::ranges::equal(one, other, {}, &std::vector<double>::size, &std::vector<double>::size);
}

double mean_error::half_width() const {
  return freedom == 0 ? not_a_number : student_quantile(freedom) * standard_error;
}

mean_error error_of(const batches_of_runs& runs) {
  std::vector<double> batches;
  std::vector<double> means; // of each run
  for (const auto& run : runs) {
    if (run.empty()) continue;
    auto run_batches = batch_means(run);
    batches.insert(batches.end(), run_batches.begin(), run_batches.end());
    means.push_back(mean_of(run_batches));
  }
  auto error = error_of_independent(batches);
  auto wider = means.size() == 1 ? error_of_dependent(all_of(runs)) : std::nullopt;
  if (means.size() > 1) {
    wider = error_of_independent(means);
    wider->is_dependent = true;
  }
  return wider && wider->half_width() > error.half_width() ? *wider : error;
}

estimate estimate_of_series(std::span<const double> series) {
  auto error = error_of({batch_means(series, short_batch_count)});
  return {mean_of(series), error.standard_error, series.size()};
}

quantile_range range_of_quantile(std::span<const std::vector<double>> runs,
                                 const sorted_values& sorted, double fraction, double repeats) {
  auto value = sorted.quantile(fraction);
  batches_of_runs shares; // of values that are no longer
  batches_of_runs means;
  for (const auto& run : runs) {
    auto is_below = mapped(run, [&](double one) { return one <= value ? 1. : 0.; });
    shares.push_back(batch_means(is_below, short_batch_count));
    means.push_back(batch_means(run, short_batch_count));
  }
  auto error = error_of(shares);
  if (error.freedom == 0) return {not_a_number, not_a_number};
  auto count = static_cast<double>(sorted.values().size());
  mean_error least{std::sqrt(fraction * (1 - fraction) / count), error.freedom};
  if (auto of_mean = error_of(means); of_mean.is_dependent) {
    auto growth = of_mean.standard_error / estimate_of(sorted.values()).standard_error;
    least = {least.standard_error * std::max(growth, 1.0), of_mean.freedom};
  }
  auto half = std::sqrt(repeats) * std::max(error.half_width(), least.half_width());
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

// `values - factor * baseline`, batch by batch.
batches_of_runs differences_of(const batches_of_runs& values, double factor,
                               const batches_of_runs& baseline) {
  TROUPE_ASSERT(are_alike(values, baseline), values.size(), baseline.size());
  auto differences = values;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t k = 0; k < values[i].size(); ++k)
      differences[i][k] -= factor * baseline[i][k];
  return differences;
}

// @param scale Multiplies the error of the differences.
interval_estimate interval_of(double mean, const batches_of_runs& differences, double scale) {
  auto error = error_of(differences);
  uint64_t count = 0;
  for (const auto& run : differences)
    count += std::min(run.size(), batch_count);
  auto half = scale * error.half_width();
  return {mean, scale * error.standard_error, mean - half, mean + half, count, error.freedom};
}

} // namespace

interval_estimate paired_difference(const batches_of_runs& values,
                                    const batches_of_runs& baseline) {
  auto differences = differences_of(values, 1, baseline);
  return interval_of(mean_of(all_of(differences)), differences, 1);
}

interval_estimate paired_share(const batches_of_runs& values, const batches_of_runs& baseline) {
  auto baseline_mean = mean_of(all_of(baseline));
  auto share = mean_of(all_of(values)) / baseline_mean;
  return interval_of(share - 1, differences_of(values, share, baseline), 1 / baseline_mean);
}

} // namespace troupe
