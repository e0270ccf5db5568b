// SPDX-License-Identifier: Apache-2.0
// What a simulation's numbers are worth: means with their errors, quantiles, comparisons in pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A mean, and how far it may be off.
struct estimate {
  double mean = 0;           ///< NaN without values.
  double standard_error = 0; ///< Of the mean; NaN with fewer than two values.
  uint64_t count = 0;        ///< Values that it was made of.
};

/// A mean with the interval that holds the true one in 95 of 100 cases.
struct interval_estimate {
  double mean = 0;
  double standard_error = 0;
  double low = 0;
  double high = 0;
  uint64_t count = 0;
};

/// Values in ascending order, of which quantiles are taken.
class sorted_values {
public:
  explicit sorted_values(std::vector<double> values);

  /// The smallest value that at least `fraction` (0 to 1) of all do not exceed; NaN without values.
  /// Source: the nearest-rank method.
  [[nodiscard]] double quantile(double fraction) const;

  [[nodiscard]] const std::vector<double>& values() const { return values_; }

private:
  std::vector<double> values_;
};

/// The mean of independent values.
[[nodiscard]] estimate estimate_of(std::span<const double> values);

/// Batches that a series is cut into.
constexpr size_t batch_count = 20;

/// The means of `count` stretches of a series, of equal length: a value that lies in two counts in
/// each for its part, so that the mean of the means is that of the series. Fewer values than
/// `count` are each a batch of their own.
/// @pre count > 0.
[[nodiscard]] std::vector<double> batch_means(std::span<const double> series,
                                              size_t count = batch_count);

/// The mean of a series whose neighbours depend on each other, as steps do: a straggler is late for
/// several. The means of long batches hardly depend on each other.
/// Source: Law, "Simulation modeling and analysis", section 9.5.3, batch means.
[[nodiscard]] estimate estimate_of_series(std::span<const double> series);

/// Where the true quantile lies in 95 of 100 cases.
struct quantile_range {
  double low = 0; ///< NaN, here and below: too few values to tell.
  double high = 0;
};

/// The range of a quantile of a series in which neighbours depend on each other. How far the share
/// of values below it may be off comes from batch means, and is no less than of independent values;
/// the quantiles at both ends of that share are the range.
/// @param runs Series that do not depend on each other. @param sorted All their values.
/// @param repeats Values that tell as much as one: above 1, if values repeat each other.
/// Source: Law, "Simulation modeling and analysis", section 9.5.
[[nodiscard]] quantile_range range_of_quantile(std::span<const std::vector<double>> runs,
                                               const sorted_values& sorted, double fraction,
                                               double repeats = 1);

/// Two-sided 95 % quantile of Student's t distribution; relative error below 0.1 %.
/// @pre degrees_of_freedom > 0.
/// Source: Abramowitz and Stegun, "Handbook of mathematical functions", 26.7.5; a table below 4.
[[nodiscard]] double student_quantile(uint64_t degrees_of_freedom);

/// The mean of `values[i] - baseline[i]`, which are of the same draws: what is common to both falls
/// out of the difference, so it is known much better than either mean.
/// @pre Both are as many. With fewer than two the interval is NaN.
[[nodiscard]] interval_estimate paired_difference(std::span<const double> values,
                                                  std::span<const double> baseline);

/// The mean of `values` over that of `baseline`, less 1, which are of the same draws: by how much
/// they differ, as a share of the baseline, which is not known exactly either.
/// @pre Both are as many. With fewer than two the interval is NaN.
/// Source: Cochran, "Sampling techniques", 3rd edition (1977), 6.4: the ratio estimator.
[[nodiscard]] interval_estimate paired_share(std::span<const double> values,
                                             std::span<const double> baseline);

} // namespace troupe
