// SPDX-License-Identifier: Apache-2.0
// Clips gradients by value and by norm.
#include "strategies/optimizers/clip.hpp"

#include "kernels/math/clip.hpp"
#include "kernels/math/reduce.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/gradient_values.hpp"

#include <cmath>

namespace troupe {

namespace {

double squared_norm_of(const gradient& gradient) {
  return cpu::squared_norm({}, elements{values_of(gradient).contiguous()});
}

gradient multiplied(const gradient& gradient, double factor) {
  if (factor == 1) return gradient;
  const auto& values = values_of(gradient);
  return with_values(gradient,
                     transformed(values, values.type(), [factor](double x) { return x * factor; }));
}

void check_norm(double norm_max) {
  if (!(norm_max > 0))
    throw_failure(errc::invalid_argument, "a clip to the norm {}: it must be a positive number",
                  norm_max);
}

} // namespace

gradient clip_by_value(const gradient& gradient, double low, double high) {
  if (!(low <= high))
    throw_failure(errc::invalid_argument, "a clip to [{}, {}]: the limits must be in order", low,
                  high);
  const auto& values = values_of(gradient);
  return with_values(gradient, transformed(values, values.type(), [=](double x) {
                       return x < low ? low : x > high ? high : x;
                     }));
}

gradient clip_by_norm(const gradient& gradient, double norm_max) {
  check_norm(norm_max);
  auto norm = std::sqrt(squared_norm_of(gradient));
  return multiplied(gradient, norm <= norm_max ? 1 : norm_max / norm);
}

double global_norm(const std::vector<gradient>& gradients) {
  double sum = 0;
  for (const auto& gradient : gradients)
    sum += squared_norm_of(gradient);
  return std::sqrt(sum);
}

clipped_gradients clip_by_global_norm(const std::vector<gradient>& gradients, double norm_max) {
  check_norm(norm_max);
  clipped_gradients result{{}, global_norm(gradients)};
  auto factor = clip_factor(result.global_norm, norm_max);
  result.gradients = mapped(gradients, [&](const auto& one) { return multiplied(one, factor); });
  return result;
}

} // namespace troupe
