// SPDX-License-Identifier: Apache-2.0
// The distributions that have a name and numbers: their draws and their means.
#pragma once

#include "kernels/tensor/random.hpp"
#include "kernels/tensor/random_lanes.hpp"

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// A number that a distribution takes.
struct distribution_parameter {
  std::string_view name;
  double low = 0;                                        ///< The least that is accepted ...
  bool above_low = false;                                ///< ... or the least that is not.
  double high = std::numeric_limits<double>::infinity(); ///< The most that is accepted.
};

/// A distribution of one draw that depends on no other.
struct distribution_family {
  using numbers = std::span<const double>;

  std::string_view name;
  std::span<const distribution_parameter> parameters;
  size_t optional = 0; ///< So many of the last parameters may be left out.
  double (*draw)(numbers, random_stream&);
  double (*mean)(numbers); ///< Infinity if there is none.
  /// Says why numbers that are in range one by one do not fit together; empty if they do. May be
  /// null.
  std::string_view (*refuse)(numbers) = nullptr;
  /// Draws from the first two uniform numbers of each of several streams, as `draw` does; NaN where
  /// it takes more of them. @param times Holds the first numbers before, the draws after.
  /// May be null.
  void (*draw_lanes)(numbers, lane_values& times, const lane_values& second) = nullptr;
  /// The order from which on moments are infinite; null if all are finite.
  double (*tail_index)(numbers) = nullptr;
};

/// How the family is written: "pareto(minimum, alpha[, cap])".
[[nodiscard]] std::string signature(const distribution_family& family);

/// All of them, in the order in which messages list them.
///
/// | name                             | what it draws                                            |
/// |----------------------------------|----------------------------------------------------------|
/// | constant(time)                   | always the same                                          |
/// | uniform(low, high)               |                                                          |
/// | exponential(mean)                |                                                          |
/// | shifted_exponential(shift, rate) | shift + an exponential time of mean 1 / rate             |
/// | shifted_gamma(shift, shape, scale) | shift + a gamma time of mean shape * scale             |
/// | gumbel(location, scale)          | of largest values; below 0 it counts as 0                |
/// | lognormal(median, sigma)         | sigma: of the logarithm                                  |
/// | weibull(shape, scale)            |                                                          |
/// | pareto(minimum, alpha[, cap])    | with a cap: of those draws that do not exceed it         |
/// | two_point(p, slow)               | slow with probability p, else 1                          |
///
/// The draws are made of `random_stream`'s alone, so they are the same on every machine.
[[nodiscard]] std::span<const distribution_family> distribution_families();

/// The family of that name; null if there is none.
[[nodiscard]] const distribution_family* find_distribution_family(std::string_view name);

} // namespace troupe
