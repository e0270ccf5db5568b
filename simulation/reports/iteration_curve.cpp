// SPDX-License-Identifier: Apache-2.0
// The texts of curves, and their values.
#include "simulation/reports/iteration_curve.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

/// Takes a text apart from its beginning on; blanks count for nothing.
class scanner {
public:
  explicit scanner(std::string_view text) : rest_(text) {}

  bool accept(char letter) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != letter) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<double> accept_number() {
    skip_blanks();
    double number = 0;
    auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (problem != std::errc{} || !std::isfinite(number)) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

  [[nodiscard]] std::string_view rest() const { return rest_; }

private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
};

tl::unexpected<error> refuse(std::string_view text, std::string_view reason) {
  return fail(errc::invalid_argument,
              fmt::format("'{}': {}; write 1/N, N^-0.8, 9000 + 5e5/N, or measured numbers of steps "
                          "such as 50: 13000, 90: 9500",
                          text, reason));
}

} // namespace

expected<iteration_curve> iteration_curve::parse(std::string_view text) {
  iteration_curve curve;
  curve.text_ = text;
  if (text.find(':') != std::string_view::npos)
    return parse_points(text).map([&](std::vector<point> points) {
      curve.points_ = std::move(points);
      return curve;
    });
  return parse_terms(text).map([&](std::vector<term> terms) {
    curve.terms_ = std::move(terms);
    return curve;
  });
}

// term = number [ "/" N [ "^" number ] ] | [ number "*" ] N [ "^" number ]
expected<std::vector<iteration_curve::term>> iteration_curve::parse_terms(std::string_view text) {
  std::vector<term> terms;
  scanner scan{text};
  do {
    auto factor = scan.accept_number();
    bool divides = factor && scan.accept('/');
    bool has_variable = divides || !factor || scan.accept('*');
    double power = 0;
    if (has_variable) {
      if (!scan.accept('N'))
        return refuse(text, fmt::format("an N is missing before '{}'", scan.rest()));
      auto exponent = scan.accept('^') ? scan.accept_number() : std::optional{1.0};
      if (!exponent) return refuse(text, "after '^' comes a number");
      power = divides ? -*exponent : *exponent;
    }
    if (factor.value_or(1) <= 0) return refuse(text, "steps are more than 0");
    terms.push_back({factor.value_or(1), power});
  } while (scan.accept('+'));
  if (!scan.at_end()) return refuse(text, fmt::format("'{}' is no part of it", scan.rest()));
  return terms;
}

expected<std::vector<iteration_curve::point>> iteration_curve::parse_points(std::string_view text) {
  std::vector<point> points;
  scanner scan{text};
  do {
    auto gradients = scan.accept_number();
    bool paired = gradients && scan.accept(':');
    auto steps = paired ? scan.accept_number() : std::nullopt;
    if (!steps) return refuse(text, fmt::format("N: STEPS was expected before '{}'", scan.rest()));
    if (*gradients <= 0 || *steps <= 0) return refuse(text, "N and steps are more than 0");
    points.push_back({*gradients, *steps});
  } while (scan.accept(','));
  if (!scan.at_end()) return refuse(text, fmt::format("'{}' is no part of it", scan.rest()));
  std::ranges::sort(points, {}, &point::gradients);
  if (std::ranges::adjacent_find(points, {}, &point::gradients) != points.end())
    return refuse(text, "an N stands there twice");
  return points;
}

expected<double> iteration_curve::steps(double gradients) const {
  auto steps = points_.empty() ? sum_of_terms(gradients) : between_points(gradients);
  if (!steps)
    return fail(
      errc::out_of_range,
      fmt::format("the curve of iterations does not say how many steps it takes with {:g} "
                  "gradients a step",
                  gradients));
  if (!std::isfinite(*steps) || *steps <= 0)
    return fail(errc::invalid_argument,
                fmt::format("the curve of iterations says that it takes {:g} steps with {:g} "
                            "gradients a step; give one that is finite and above 0 there",
                            *steps, gradients));
  return *steps;
}

double iteration_curve::sum_of_terms(double gradients) const {
  double sum = 0;
  for (auto [factor, power] : terms_)
    sum += factor * std::pow(gradients, power);
  return sum;
}

std::optional<double> iteration_curve::between_points(double gradients) const {
  auto above = std::ranges::lower_bound(points_, gradients, {}, &point::gradients);
  if (above == points_.end()) return std::nullopt;
  if (above->gradients == gradients) return above->steps;
  if (above == points_.begin()) return std::nullopt;
  auto below = above - 1;
  auto part
    = std::log(gradients / below->gradients) / std::log(above->gradients / below->gradients);
  return below->steps * std::pow(above->steps / below->steps, part);
}

} // namespace troupe
