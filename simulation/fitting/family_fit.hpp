// SPDX-License-Identifier: Apache-2.0
// Distributions fitted to measured times by maximum likelihood.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// A distribution with the parameters that make the times most likely.
struct family_fit {
  std::string expression; ///< As `distribution::parse` reads it.
  size_t parameter_count = 0;
  double log_likelihood = 0; ///< Natural, of all times; infinity if it is a single time.
  /// The Bayesian information criterion: parameters * ln(times) - 2 * log likelihood. The lowest is
  /// the best: a parameter more must pay for itself.
  double criterion = 0;
  /// Kolmogorov and Smirnov's: the largest distance between the measured and the fitted share of
  /// times that are no longer. From 0 to 1.
  double distance = 0;
  std::function<double(double seconds)> cumulative; ///< The fitted share.
};

/// Fits, by maximum likelihood, every distribution of the lab that has a density, mixtures of two
/// lognormal distributions, and of a lognormal one and a Pareto tail (the latter two by expectation
/// and maximisation). A distribution that the times rule out, such as one without 0, is not tried.
/// @param seconds At least one, each from 0 on, in any order. An even selection of the sorted
/// ones is taken if there are more than 10,000.
/// @returns The best first; a single `constant` if all times are the same.
[[nodiscard]] std::vector<family_fit> fit_families(std::vector<double> seconds);

/// The even selection that `fit_families` looks at, in ascending order.
[[nodiscard]] std::vector<double> even_selection(std::vector<double> values);

} // namespace troupe
