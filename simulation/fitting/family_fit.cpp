// SPDX-License-Identifier: Apache-2.0
// The fit of each family of distributions, and its figures of merit.
#include "simulation/fitting/family_fit.hpp"

#include "messages/errors/assert.hpp"
#include "simulation/fitting/mixture_fit.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr size_t selection_max = 10'000;

using values = std::span<const double>;

/// A fitted distribution with the numbers that judge it.
struct fitted {
  std::string expression;
  size_t parameter_count;
  double log_likelihood;
  std::function<double(double)> cumulative;
};

template <class Function>
double average_of(values seconds, const Function& function) {
  double sum = 0;
  for (double second : seconds)
    sum += function(second);
  return sum / static_cast<double>(seconds.size());
}

double average_of(values seconds) {
  return average_of(seconds, [](double second) { return second; });
}

double mean_logarithm(values seconds) {
  return average_of(seconds, [](double second) { return std::log(second); });
}

// Where an increasing function is 0, on a logarithmic scale. @pre 0 < low < high.
template <class Function>
double root_of(const Function& increasing, double low, double high) {
  for (int i = 0; i < 80; ++i) {
    auto middle = std::sqrt(low * high);
    (increasing(middle) < 0 ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

// ---- gamma's functions ----

// Source: Abramowitz and Stegun, "Handbook of mathematical functions", 6.3.5 and 6.3.18.
double digamma(double x) {
  double sum = 0;
  for (; x < 10; ++x)
    sum -= 1 / x;
  auto square = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x
         - square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
}

// The regularised lower incomplete gamma function P(shape, x).
// Source: Abramowitz and Stegun, 6.5.29, and 6.5.31 by Lentz's method.
double gamma_share(double shape, double x) {
  if (x <= 0) return 0;
  auto front = std::exp(shape * std::log(x) - x - std::lgamma(shape));
  if (x < shape + 1) {
    double term = 1 / shape;
    double sum = term;
    for (double n = shape + 1; term > 1e-14 * sum; ++n)
      sum += term *= x / n;
    return front * sum;
  }
  constexpr double tiny = 1e-300;
  double b = x + 1 - shape;
  double c = 1 / tiny;
  double d = 1 / b;
  double fraction = d;
  for (int i = 1; i < 10'000; ++i) {
    auto a = -i * (i - shape);
    b += 2;
    d = 1 / std::max(a * d + b, tiny);
    c = std::max(b + a / c, tiny);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return 1 - front * fraction;
}

// ---- families ----

fitted fit_uniform(values sorted) {
  auto low = sorted.front();
  auto high = sorted.back();
  return {fmt::format("uniform({:.9g}, {:.9g})", low, high), 2,
          -static_cast<double>(sorted.size()) * std::log(high - low),
          [=](double x) { return std::clamp((x - low) / (high - low), 0.0, 1.0); }};
}

// With a shift, if there is one: the shortest time.
fitted fit_exponential(values sorted, bool is_shifted) {
  auto shift = is_shifted ? sorted.front() : 0;
  auto mean = average_of(sorted) - shift;
  return {is_shifted ? fmt::format("shifted_exponential({:.9g}, {:.5g})", shift, 1 / mean)
                     : fmt::format("exponential({:.5g})", mean),
          is_shifted ? 2U : 1U, -static_cast<double>(sorted.size()) * (std::log(mean) + 1),
          [=](double x) { return x < shift ? 0 : -std::expm1(-(x - shift) / mean); }};
}

fitted fit_lognormal(values sorted) {
  auto middle = mean_logarithm(sorted);
  auto variance
    = average_of(sorted, [=](double x) { return (std::log(x) - middle) * (std::log(x) - middle); });
  auto sigma = std::sqrt(variance);
  auto log_likelihood = -static_cast<double>(sorted.size())
                        * (middle + 0.5 + std::log(sigma * std::sqrt(2 * std::numbers::pi)));
  return {fmt::format("lognormal({:.5g}, {:.5g})", std::exp(middle), sigma), 2, log_likelihood,
          [=](double x) { return lognormal_share(x, middle, sigma); }};
}

fitted fit_gumbel(values sorted) {
  auto mean = average_of(sorted);
  auto least = sorted.front();
  auto range = sorted.back() - least;
  auto weight = [=](double x, double scale) { return std::exp((least - x) / scale); };
  auto scale = root_of(
    [&](double tried) {
      auto weights = average_of(sorted, [&](double x) { return weight(x, tried); });
      return tried - mean
             + average_of(sorted, [&](double x) { return x * weight(x, tried); }) / weights;
    },
    1e-6 * range, 10 * range);
  auto location
    = least - scale * std::log(average_of(sorted, [&](double x) { return weight(x, scale); }));
  auto log_likelihood
    = -static_cast<double>(sorted.size()) * (std::log(scale) + (mean - location) / scale + 1);
  return {fmt::format("gumbel({:.9g}, {:.5g})", location, scale), 2, log_likelihood,
          [=](double x) { return std::exp(-std::exp((location - x) / scale)); }};
}

fitted fit_weibull(values sorted) {
  auto largest = sorted.back();
  auto mean_log = mean_logarithm(sorted);
  auto powers = [=](double shape) {
    return average_of(sorted, [=](double x) { return std::pow(x / largest, shape); });
  };
  auto shape = root_of(
    [&](double tried) {
      auto logs
        = average_of(sorted, [=](double x) { return std::pow(x / largest, tried) * std::log(x); });
      return logs / powers(tried) - 1 / tried - mean_log;
    },
    1e-3, 1e4);
  auto scale = largest * std::pow(powers(shape), 1 / shape);
  auto log_likelihood = static_cast<double>(sorted.size())
                        * (std::log(shape) - shape * std::log(scale) + (shape - 1) * mean_log - 1);
  return {fmt::format("weibull({:.5g}, {:.5g})", shape, scale), 2, log_likelihood,
          [=](double x) { return -std::expm1(-std::pow(x / scale, shape)); }};
}

fitted fit_pareto(values sorted) {
  auto minimum = sorted.front();
  auto above = mean_logarithm(sorted) - std::log(minimum);
  auto alpha = 1 / above;
  auto log_likelihood = static_cast<double>(sorted.size())
                        * (std::log(alpha) - std::log(minimum) - (alpha + 1) * above);
  return {fmt::format("pareto({:.9g}, {:.5g})", minimum, alpha), 2, log_likelihood,
          [=](double x) { return x < minimum ? 0 : 1 - std::pow(minimum / x, alpha); }};
}

// The gamma distribution with a given shift. A shape below 1 has an infinite density at the shift,
// so that every shift at the shortest time would be the likeliest: there is no such fit.
std::optional<fitted> fit_gamma(values sorted, double shift) {
  auto mean = average_of(sorted) - shift;
  auto mean_log = average_of(sorted, [=](double x) { return std::log(x - shift); });
  auto spread = std::log(mean) - mean_log;
  auto shape
    = root_of([=](double tried) { return spread - std::log(tried) + digamma(tried); }, 0.01, 1e6);
  if (shape < 1) return std::nullopt;
  auto scale = mean / shape;
  auto log_likelihood
    = static_cast<double>(sorted.size())
      * ((shape - 1) * mean_log - shape - shape * std::log(scale) - std::lgamma(shape));
  return fitted{fmt::format("shifted_gamma({:.9g}, {:.5g}, {:.5g})", shift, shape, scale), 3,
                log_likelihood, [=](double x) { return gamma_share(shape, (x - shift) / scale); }};
}

// Shifts below the shortest time are tried, the closer to it the finer.
std::optional<fitted> fit_shifted_gamma(values sorted) {
  constexpr int tried = 40;
  auto least = sorted.front();
  std::optional<fitted> best;
  for (int i = 0; i <= tried; ++i) {
    auto fit = fit_gamma(sorted, least - least * std::pow(10, -4.0 * i / tried));
    if (fit && (!best || fit->log_likelihood > best->log_likelihood)) best = std::move(fit);
  }
  return best;
}

double distance_of(values sorted, const std::function<double(double)>& cumulative) {
  auto count = static_cast<double>(sorted.size());
  double largest = 0;
  for (size_t first = 0; first < sorted.size();) {
    auto next = first;
    while (next < sorted.size() && sorted[next] == sorted[first])
      ++next;
    auto share = cumulative(sorted[first]);
    // Equal times that are written with few digits lie on both sides of the true value.
    auto middle = (static_cast<double>(first) + static_cast<double>(next)) / 2 / count;
    auto half = next - first == 1 ? 0.5 / count : 0;
    largest = std::max(largest, std::abs(share - middle) + half);
    first = next;
  }
  return largest;
}

family_fit judged(values sorted, fitted fit) {
  auto criterion
    = static_cast<double>(fit.parameter_count) * std::log(static_cast<double>(sorted.size()))
      - 2 * fit.log_likelihood;
  auto distance = distance_of(sorted, fit.cumulative);
  return {std::move(fit.expression), fit.parameter_count, fit.log_likelihood, criterion, distance,
          std::move(fit.cumulative)};
}

} // namespace

std::vector<double> even_selection(std::vector<double> values) {
  std::ranges::sort(values);
  if (values.size() <= selection_max) return values;
  std::vector<double> selected;
  for (size_t i = 0; i < selection_max; ++i)
    selected.push_back(values[(2 * i + 1) * values.size() / (2 * selection_max)]);
  return selected;
}

std::vector<family_fit> fit_families(std::vector<double> seconds) {
  TROUPE_ASSERT(!seconds.empty());
  auto sorted = even_selection(std::move(seconds));
  if (sorted.front() == sorted.back()) {
    auto time = sorted.front();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {{fmt::format("constant({:.9g})", time), 1, infinity, -infinity, 0,
             [time](double x) { return x < time ? 0.0 : 1.0; }}};
  }
  std::vector<family_fit> fits;
  // Times that hardly differ may leave a scale of 0.
  auto add = [&](fitted fit) {
    if (std::isfinite(fit.log_likelihood)) fits.push_back(judged(sorted, std::move(fit)));
  };
  add(fit_uniform(sorted));
  add(fit_exponential(sorted, false));
  add(fit_exponential(sorted, true));
  add(fit_gumbel(sorted));
  if (sorted.front() > 0) {
    add(fit_lognormal(sorted));
    add(fit_weibull(sorted));
    add(fit_pareto(sorted));
    if (auto gamma = fit_shifted_gamma(sorted)) add(std::move(*gamma));
    for (auto& mixture : fit_mixtures(sorted))
      add({mixture.expression(), lognormal_mixture::parameter_count, mixture.log_likelihood,
           [mixture](double x) { return mixture.cumulative(x); }});
  }
  std::ranges::stable_sort(fits, {}, &family_fit::criterion);
  return fits;
}

} // namespace troupe
