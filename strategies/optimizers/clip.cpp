// SPDX-License-Identifier: Apache-2.0
// Norms and factors of gradients.
#include "strategies/optimizers/clip.hpp"

#include "kernels/math/clip.hpp"
#include "kernels/math/reduce.hpp"
#include "strategies/contexts/gradient_values.hpp"

#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

double squared_norm_of(const gradient& one) {
  return cpu::squared_norm({}, elements{values_of(one).contiguous()});
}

gradient multiplied(const gradient& one, double factor) {
  if (factor == 1) return one;
  const auto& values = values_of(one);
  return with_values(one,
                     transformed(values, values.type(), [factor](double x) { return x * factor; }));
}

void check_norm(double norm_max) {
  if (!(norm_max > 0))
    throw failure{{errc::invalid_argument,
                   fmt::format("a clip to the norm {}: it must be a positive number", norm_max)}};
}

} // namespace

gradient clip_by_value(const gradient& of, double low, double high) {
  if (!(low <= high))
    throw failure{{errc::invalid_argument,
                   fmt::format("a clip to [{}, {}]: the limits must be in order", low, high)}};
  const auto& values = values_of(of);
  return with_values(of, transformed(values, values.type(), [=](double x) {
                       return x < low ? low : x > high ? high : x;
                     }));
}

gradient clip_by_norm(const gradient& of, double norm_max) {
  check_norm(norm_max);
  auto norm = std::sqrt(squared_norm_of(of));
  return multiplied(of, norm <= norm_max ? 1 : norm_max / norm);
}

double global_norm(const std::vector<gradient>& gradients) {
  double sum = 0;
  for (const auto& one : gradients)
    sum += squared_norm_of(one);
  return std::sqrt(sum);
}

clipped_gradients clip_by_global_norm(const std::vector<gradient>& gradients, double norm_max) {
  check_norm(norm_max);
  clipped_gradients result{{}, global_norm(gradients)};
  auto factor = clip_factor(result.global_norm, norm_max);
  result.gradients.reserve(gradients.size());
  for (const auto& one : gradients)
    result.gradients.push_back(multiplied(one, factor));
  return result;
}

} // namespace troupe
