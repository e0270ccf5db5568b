// SPDX-License-Identifier: Apache-2.0
// Mixtures of two distributions, fitted to measured times.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The share of a lognormal distribution up to x. @param middle, sigma Of the logarithm.
[[nodiscard]] double lognormal_share(double x, double middle, double sigma);

/// A lognormal distribution, and a second part with a weight: another one, or a Pareto tail.
struct lognormal_mixture {
  static constexpr size_t parameter_count = 5;

  double weight = 0; ///< The second part's; above 0 and below 1.
  double middle = 0; ///< Mean of the logarithm; `sigma` is its deviation.
  double sigma = 0;
  bool has_tail = false;   ///< The second part is a Pareto distribution.
  double other_middle = 0; ///< Mean of the logarithm; a tail's minimum.
  double other_sigma = 0;  ///< Deviation of the logarithm; a tail's alpha.
  double log_likelihood = 0;

  [[nodiscard]] std::string expression() const;
  [[nodiscard]] double cumulative(double x) const;
};

/// The likeliest mixture of each kind, unless one part of it has hardly any time.
/// @param sorted In ascending order, above 0, and not all the same.
/// Source: Dempster, Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
/// J. R. Statist. Soc. B 39 (1977).
[[nodiscard]] std::vector<lognormal_mixture> fit_mixtures(std::span<const double> sorted);

} // namespace troupe
