// SPDX-License-Identifier: Apache-2.0
// The table of distributions with a name, and their formulas.
#include "simulation/distributions/distribution_family.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

using numbers = distribution_family::numbers;
using parameter = distribution_parameter;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double euler_gamma = 0.57721566490153286;

double power(double base, double exponent) {
  return portable_exp(exponent * portable_log(base));
}

// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26
// (2000); a shape below 1 as its section 6 says.
double gamma(double shape, random_stream& stream) {
  if (shape < 1) {
    double larger = gamma(shape + 1, stream);
    return larger * power(1 - stream.uniform(), 1 / shape);
  }
  double d = shape - 1.0 / 3;
  double c = 1 / std::sqrt(9 * d);
  while (true) {
    double x = stream.normal();
    double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    double u = 1 - stream.uniform();
    if (portable_log(u) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

// The share of an uncapped Pareto distribution that the cap leaves.
double pareto_share(numbers n) {
  return n.size() < 3 ? 1 : 1 - power(n[0] / n[2], n[1]);
}

double pareto(numbers n, random_stream& stream) {
  return n[0] * power(1 - stream.uniform() * pareto_share(n), -1 / n[1]);
}

double pareto_tail_index(numbers n) {
  return n.size() < 3 ? n[1] : infinity;
}

double pareto_mean(numbers n) {
  if (n.size() < 3) return n[1] > 1 ? n[0] * n[1] / (n[1] - 1) : infinity;
  double minimum = n[0];
  double alpha = n[1];
  double cap = n[2];
  double sum = alpha == 1
                 ? minimum * std::log(cap / minimum)
                 : alpha / (alpha - 1) * minimum * (1 - std::pow(minimum / cap, alpha - 1));
  return sum / pareto_share(n);
}

// As `random_stream::exponential`.
void exponential_lanes(lane_values& x) {
  for (auto& one : x)
    one = 1.0 - one;
  log_lanes(x);
  for (auto& one : x)
    one = -one;
}

// As `random_stream::normal`; NaN where the polar method draws another pair.
void normal_lanes(lane_values& x, const lane_values& second) {
  lane_values squares;
  for (size_t lane = 0; lane < random_lanes; ++lane) {
    double u = 2 * x[lane] - 1;
    double v = 2 * second[lane] - 1;
    double square = u * u + v * v;
    auto is_taken = square < 1 && square > 0;
    squares[lane] = is_taken ? square : 1;
    x[lane] = is_taken ? u : std::numeric_limits<double>::quiet_NaN();
  }
  auto logarithms = squares;
  log_lanes(logarithms);
  for (size_t lane = 0; lane < random_lanes; ++lane)
    x[lane] *= std::sqrt(-2 * logarithms[lane] / squares[lane]);
}

std::string_view refuse_pareto(numbers n) {
  return n.size() == 3 && n[2] <= n[0] ? "the cap must be above the minimum" : "";
}

std::string_view refuse_uniform(numbers n) {
  return n[1] < n[0] ? "the high end must not be below the low one" : "";
}

constexpr parameter constant_parameters[] = {{"time"}};
constexpr parameter uniform_parameters[] = {{"low"}, {"high"}};
constexpr parameter exponential_parameters[] = {{"mean", 0, true}};
constexpr parameter shifted_exponential_parameters[] = {{"shift"}, {"rate", 0, true}};
constexpr parameter shifted_gamma_parameters[]
  = {{"shift"}, {"shape", 0, true}, {"scale", 0, true}};
constexpr parameter gumbel_parameters[] = {{"location"}, {"scale", 0, true}};
constexpr parameter lognormal_parameters[] = {{"median", 0, true}, {"sigma"}};
constexpr parameter weibull_parameters[] = {{"shape", 0, true}, {"scale", 0, true}};
constexpr parameter pareto_parameters[]
  = {{"minimum", 0, true}, {"alpha", 0, true}, {"cap", 0, true}};
constexpr parameter two_point_parameters[] = {{"p", 0, false, 1}, {"slow"}};

constexpr distribution_family families[] = {
  {"constant", constant_parameters, 0, [](numbers n, random_stream&) { return n[0]; },
   [](numbers n) { return n[0]; }},
  {"uniform", uniform_parameters, 0,
   [](numbers n, random_stream& stream) { return n[0] + (n[1] - n[0]) * stream.uniform(); },
   [](numbers n) { return (n[0] + n[1]) / 2; }, refuse_uniform,
   [](numbers n, lane_values& x, const lane_values&) {
     for (auto& one : x)
       one = n[0] + (n[1] - n[0]) * one;
   }},
  {"exponential", exponential_parameters, 0,
   [](numbers n, random_stream& stream) { return n[0] * stream.exponential(); },
   [](numbers n) { return n[0]; }, nullptr,
   [](numbers n, lane_values& x, const lane_values&) {
     exponential_lanes(x);
     for (auto& one : x)
       one = n[0] * one;
   }},
  {"shifted_exponential", shifted_exponential_parameters, 0,
   [](numbers n, random_stream& stream) { return n[0] + stream.exponential() / n[1]; },
   [](numbers n) { return n[0] + 1 / n[1]; }, nullptr,
   [](numbers n, lane_values& x, const lane_values&) {
     exponential_lanes(x);
     for (auto& one : x)
       one = n[0] + one / n[1];
   }},
  {"shifted_gamma", shifted_gamma_parameters, 0,
   [](numbers n, random_stream& stream) { return n[0] + n[2] * gamma(n[1], stream); },
   [](numbers n) { return n[0] + n[1] * n[2]; }},
  {"gumbel", gumbel_parameters, 0,
   [](numbers n, random_stream& stream) {
     return std::max(0.0, n[0] - n[1] * portable_log(stream.exponential()));
   },
   [](numbers n) { // of what is cut at 0; from exp(6) on nothing is
     auto cut = -std::expint(-std::exp(std::min(n[0] / n[1], 6.0)));
     return n[0] + (euler_gamma + cut) * n[1];
   }},
  {"lognormal", lognormal_parameters, 0,
   [](numbers n, random_stream& stream) { return n[0] * portable_exp(n[1] * stream.normal()); },
   [](numbers n) { return n[0] * std::exp(n[1] * n[1] / 2); }, nullptr,
   [](numbers n, lane_values& x, const lane_values& second) {
     normal_lanes(x, second);
     for (auto& one : x)
       one = n[1] * one;
     exp_lanes(x);
     for (auto& one : x)
       one = n[0] * one;
   }},
  {"weibull", weibull_parameters, 0,
   [](numbers n, random_stream& stream) { return n[1] * power(stream.exponential(), 1 / n[0]); },
   [](numbers n) { return n[1] * std::tgamma(1 + 1 / n[0]); }},
  {"pareto", pareto_parameters, 1, pareto, pareto_mean, refuse_pareto, nullptr, pareto_tail_index},
  {"two_point", two_point_parameters, 0,
   [](numbers n, random_stream& stream) { return stream.uniform() < n[0] ? n[1] : 1.0; },
   [](numbers n) { return 1 - n[0] + n[0] * n[1]; }},
};

} // namespace

std::string signature(const distribution_family& family) {
  std::string text{family.name};
  auto required = family.parameters.size() - family.optional;
  for (size_t i = 0; i < family.parameters.size(); ++i)
    text += fmt::format("{}{}{}{}", i == 0 ? "(" : "", i == required ? "[" : "", i == 0 ? "" : ", ",
                        family.parameters[i].name);
  return text + (family.optional > 0 ? "])" : ")");
}

std::span<const distribution_family> distribution_families() {
  return families;
}

const distribution_family* find_distribution_family(std::string_view name) {
  const auto* found = std::ranges::find(families, name, &distribution_family::name);
  return found == std::end(families) ? nullptr : found;
}

} // namespace troupe
