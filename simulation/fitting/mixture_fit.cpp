// SPDX-License-Identifier: Apache-2.0
// Expectation and maximisation for mixtures of two distributions.
#include "simulation/fitting/mixture_fit.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>
#include <optional>

namespace troupe {

namespace {

constexpr int rounds_max = 300;
constexpr double times_min = 5; // that a part has, at least

/// The logarithms of times, and what one round of the algorithm finds of them.
class mixture_search {
public:
  explicit mixture_search(std::span<const double> sorted) {
    for (double time : sorted)
      logs_.push_back(std::log(time));
    // A part that shrinks to one time would have an infinite likelihood.
    sigma_min_ = 1e-3 * (logs_.back() - logs_.front());
  }

  [[nodiscard]] double quantile(double share) const {
    return logs_[static_cast<size_t>(share * static_cast<double>(logs_.size() - 1))];
  }

  // From a division of the times into the shorter ones and the others.
  [[nodiscard]] std::optional<lognormal_mixture> search(double share, bool has_tail) const {
    lognormal_mixture found{.weight = 1 - share,
                            .middle = quantile(share / 2),
                            .sigma = std::max(sigma_min_, quantile(share) - quantile(share / 2)),
                            .has_tail = has_tail,
                            .other_middle = quantile(has_tail ? share : (1 + share) / 2),
                            .other_sigma
                            = has_tail ? 2 : std::max(sigma_min_, quantile(1) - quantile(share)),
                            .log_likelihood = -std::numeric_limits<double>::infinity()};
    for (int round = 0; round < rounds_max; ++round) {
      auto before = found.log_likelihood;
      improve(found);
      auto least = times_min / static_cast<double>(logs_.size());
      if (!(found.weight > least && found.weight < 1 - least)) return std::nullopt;
      if (found.log_likelihood - before < 1e-6) break;
    }
    return found;
  }

private:
  static double normal_density(double log, double middle, double sigma) {
    auto z = (log - middle) / sigma;
    return std::exp(-0.5 * z * z) / (sigma * std::sqrt(2 * std::numbers::pi));
  }

  // The second part's density of the logarithm of a time.
  static double other_density(const lognormal_mixture& mixture, double log) {
    if (!mixture.has_tail) return normal_density(log, mixture.other_middle, mixture.other_sigma);
    if (log < mixture.other_middle) return 0;
    return mixture.other_sigma * std::exp(-mixture.other_sigma * (log - mixture.other_middle));
  }

  // The log likelihood is that of the mixture before it was improved.
  void improve(lognormal_mixture& mixture) const {
    double first = 0, first_sum = 0, first_squares = 0;
    double other = 0, other_sum = 0, other_squares = 0;
    double log_likelihood = 0;
    for (double log : logs_) {
      auto of_first = (1 - mixture.weight) * normal_density(log, mixture.middle, mixture.sigma);
      auto of_other = mixture.weight * other_density(mixture, log);
      auto density = std::max(of_first + of_other, std::numeric_limits<double>::min());
      log_likelihood += std::log(density) - log; // of the time, not of its logarithm
      auto part = of_other / density;
      other += part;
      other_sum += part * log;
      other_squares += part * log * log;
      first += 1 - part;
      first_sum += (1 - part) * log;
      first_squares += (1 - part) * log * log;
    }
    mixture.log_likelihood = log_likelihood;
    mixture.weight = other / static_cast<double>(logs_.size());
    mixture.middle = first_sum / first;
    mixture.sigma = deviation(first_squares / first - mixture.middle * mixture.middle);
    if (mixture.has_tail) {
      mixture.other_sigma
        = other / std::max(other_sum - other * mixture.other_middle, 1e-9 * other);
      return;
    }
    mixture.other_middle = other_sum / other;
    mixture.other_sigma
      = deviation(other_squares / other - mixture.other_middle * mixture.other_middle);
  }

  [[nodiscard]] double deviation(double variance) const {
    return std::max(sigma_min_, std::sqrt(std::max(0.0, variance)));
  }

  std::vector<double> logs_;
  double sigma_min_ = 0;
};

} // namespace

double lognormal_share(double x, double middle, double sigma) {
  return x <= 0 ? 0 : 0.5 * std::erfc(-(std::log(x) - middle) / (sigma * std::numbers::sqrt2));
}

std::string lognormal_mixture::expression() const {
  auto part = std::round(1e4 * weight) / 1e4; // so that the weights sum to 1 as they are written
  auto other = has_tail
                 ? fmt::format("pareto({:.9g}, {:.5g})", std::exp(other_middle), other_sigma)
                 : fmt::format("lognormal({:.5g}, {:.5g})", std::exp(other_middle), other_sigma);
  return fmt::format("mixture({:.4f}: lognormal({:.5g}, {:.5g}), {:.4f}: {})", 1 - part,
                     std::exp(middle), sigma, part, other);
}

double lognormal_mixture::cumulative(double x) const {
  auto first = lognormal_share(x, middle, sigma);
  auto in_tail
    = x <= std::exp(other_middle) ? 0 : -std::expm1(-other_sigma * (std::log(x) - other_middle));
  auto other = has_tail ? in_tail : lognormal_share(x, other_middle, other_sigma);
  return (1 - weight) * first + weight * other;
}

std::vector<lognormal_mixture> fit_mixtures(std::span<const double> sorted) {
  mixture_search search{sorted};
  std::vector<lognormal_mixture> best;
  for (bool has_tail : {false, true}) {
    std::optional<lognormal_mixture> likeliest;
    for (double share : {0.5, 0.8, 0.9, 0.95, 0.98, 0.99}) {
      auto found = search.search(share, has_tail);
      if (found && (!likeliest || found->log_likelihood > likeliest->log_likelihood))
        likeliest = found;
    }
    if (likeliest) best.push_back(*likeliest);
  }
  return best;
}

} // namespace troupe
