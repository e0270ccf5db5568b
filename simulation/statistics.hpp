// SPDX-License-Identifier: Apache-2.0
// Means with their errors, quantiles, and comparisons of experiments in pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A mean, and how far it may be off.
struct estimate {
  double mean = 0;           ///< NaN without values.
  double standard_error = 0; ///< NaN with fewer than two values.
  uint64_t count = 0;        ///< Values that the mean was made of.
};

/// A mean with the interval that holds the true one in 95 of 100 cases.
struct interval_estimate {
  double mean = 0;
  double standard_error = 0;
  double low = 0;
  double high = 0;
  uint64_t count = 0;   ///< Batches that the mean was made of, at most `batch_count` a run.
  uint64_t freedom = 0; ///< As of `mean_error`.
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

/// Batches whose means are taken for independent ones.
constexpr size_t batch_count = 20;

/// Batches that a run is cut into: half as long, so that a correlation of neighbours shows.
constexpr size_t short_batch_count = 2 * batch_count;

/// The means of `count` stretches of a series, of equal length: a value that lies in two counts in
/// each for its part, so that the mean of the means is that of the series. Fewer values than
/// `count` are each a batch of their own.
/// @pre count > 0.
[[nodiscard]] std::vector<double> batch_means(std::span<const double> series,
                                              size_t count = batch_count);

/// The means of the short batches of each run. Runs do not depend on each other.
using batches_of_runs = std::vector<std::vector<double>>;

/// Whether both have as many runs, of as many batches.
[[nodiscard]] bool are_alike(const batches_of_runs& one, const batches_of_runs& other);

/// How far the mean of batches may be off.
struct mean_error {
  double standard_error = 0; ///< NaN with fewer than two batches.
  uint64_t freedom = 0;      ///< Degrees of freedom of Student's distribution; 0: unknown.
  bool is_dependent = false; ///< Batches depend on each other, and the error allows for that.

  /// Half the interval that holds the true mean in 95 of 100 cases; NaN if it is unknown.
  [[nodiscard]] double half_width() const;
};

/// The error of the mean of all batches. Steps depend on each other, because a straggler is late
/// for several; `batch_count` batches of a run hardly do. Where they do:
///
/// - Several runs: a seed may decide for good which replicas are slow. So the interval is at least
///   as wide as that of the runs' own means, with a degree of freedom less than there are runs.
/// - A single run: slow periods may last longer than a batch. So if the correlation r of
///   neighbouring short batches is above 0 by two standard errors, the variance grows by
///   (1 + r) / (1 - r), and the degrees of freedom are those of as many fewer batches. The estimate
///   of r is raised by its bias and by one standard error, and is at most 0.95.
///
/// Source: Law, "Simulation modeling and analysis", sections 9.5.2 (replications) and 9.5.3 (batch
/// means); Tafazzoli, Wilson, Lada and Steiger, "Performance of Skart", INFORMS Journal on
/// Computing 23 (2011), the factor; Kendall, "Note on bias in the estimation of autocorrelation",
/// Biometrika 41 (1954), the bias (1 + 3 r) / n.
[[nodiscard]] mean_error error_of(const batches_of_runs& runs);

/// The mean of a single run's series, with its error as above.
[[nodiscard]] estimate estimate_of_series(std::span<const double> series);

/// Where the true quantile lies in 95 of 100 cases.
struct quantile_range {
  double low = 0; ///< NaN, here and below: too few values to tell.
  double high = 0;
};

/// The range of a quantile of series in which neighbours depend on each other. The share of values
/// below it has an interval as means have, and the quantiles at both ends of that are the range. It
/// is no narrower than that of independent values: as many as there are or, if batches depend on
/// each other, as many as would give the mean of all values the error that it has.
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

/// The mean of `values - baseline`, batch by batch of the same draws: the difference does not have
/// what both have in common, and is known much better than either mean.
/// @pre Both are alike. With fewer than two batches the interval is NaN.
[[nodiscard]] interval_estimate paired_difference(const batches_of_runs& values,
                                                  const batches_of_runs& baseline);

/// The mean of `values` over that of `baseline`, less 1, batch by batch of the same draws: by how
/// much they differ, as a share of the baseline, which is not known exactly either.
/// @pre Both are alike. With fewer than two batches the interval is NaN.
/// Source: Cochran, "Sampling techniques", 3rd edition (1977), 6.4: the ratio estimator.
[[nodiscard]] interval_estimate paired_share(const batches_of_runs& values,
                                             const batches_of_runs& baseline);

} // namespace troupe
