// SPDX-License-Identifier: Apache-2.0
// How many steps a model needs, if each averages N gradients.
#pragma once

#include "messages/errors/errc.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// More gradients a step make fewer steps, up to a point that depends on the model; the simulator
/// cannot know it. A curve says it in one of two ways:
///
/// | text                        | meaning                                                       |
/// |-----------------------------|---------------------------------------------------------------|
/// | `1/N`, `N^-0.8`, `9e5/N`    | terms, with "+" between them: a number, a number / N, or a    |
/// | `9000 + 5e5/N`, `2*N^-0.5`  | number * N ^ a number                                         |
/// | `50: 13000, 90: 9500`       | measured: N and its steps; between them, straight lines in    |
/// |                             | logarithms of both                                            |
///
/// With 1/N, gradients are as good as each other: the run that makes most a second is first.
/// `1 + 40/N` is the form in which a batch of 40 gradients is the critical one. Source: McCandlish
/// et al., "An empirical model of large-batch training", 2018, equation 2.11.
class iteration_curve {
public:
  /// 1/N.
  iteration_curve() = default;

  /// Errors: invalid_argument, naming what is wrong, if it is none of these, or not above 0.
  [[nodiscard]] static expected<iteration_curve> parse(std::string_view text);

  /// Steps to the goal with N gradients a step: a finite number above 0. @pre gradients > 0.
  /// Errors: out_of_range, where a table does not say; invalid_argument, where terms say none or
  /// infinitely many.
  [[nodiscard]] expected<double> steps(double gradients) const;

  /// As it was written.
  [[nodiscard]] const std::string& text() const { return text_; }

private:
  struct term {
    double factor = 0;
    double power = 0;
  };

  struct point {
    double gradients = 0;
    double steps = 0;
  };

  [[nodiscard]] double sum_of_terms(double gradients) const;
  [[nodiscard]] std::optional<double> between_points(double gradients) const;
  static expected<std::vector<term>> parse_terms(std::string_view text);
  static expected<std::vector<point>> parse_points(std::string_view text);

  std::string text_ = "1/N";
  std::vector<term> terms_{{1, -1}};
  std::vector<point> points_; // in ascending order; if there are any, they count
};

} // namespace troupe
