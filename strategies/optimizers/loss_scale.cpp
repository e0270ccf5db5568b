// SPDX-License-Identifier: Apache-2.0
// Moves a loss scale, and divides gradients by it.
#include "strategies/optimizers/loss_scale.hpp"

#include "kernels/math/reduce.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/gradient_values.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

constexpr double scale_min = 1;

void check_option(const char* name, double value, bool is_fine, const char* range) {
  if (!is_fine || !std::isfinite(value))
    throw_failure(errc::invalid_argument, "loss scale: {} is {}: it must be {}", name, value,
                  range);
}

void check_scale(double scale) {
  check_option("the scale", scale, scale > 0, "a positive number");
}

} // namespace

loss_scale::loss_scale(bool is_dynamic, loss_scale_options options)
  : is_dynamic_(is_dynamic), options_(options), state_{options.initial} {
  check_scale(options.initial);
  check_option("growth_factor", options.growth_factor, options.growth_factor >= 1, "at least 1");
  check_option("backoff_factor", options.backoff_factor,
               options.backoff_factor > 0 && options.backoff_factor <= 1, "above 0 and at most 1");
  check_option("growth_interval", static_cast<double>(options.growth_interval),
               options.growth_interval > 0, "at least 1");
}

loss_scale loss_scale::fixed(double scale) {
  return loss_scale{false, {.initial = scale}};
}

loss_scale loss_scale::dynamic(loss_scale_options options) {
  return loss_scale{true, options};
}

loss_scale::unscaled loss_scale::unscale(const std::vector<gradient>& gradients) const {
  unscaled result{{}, all_finite(gradients)};
  result.gradients.reserve(gradients.size());
  for (const auto& gradient : gradients) {
    const auto& values = values_of(gradient);
    auto wide = values.type() == dtype::f64 ? dtype::f64 : dtype::f32;
    auto divide = [scale = state_.scale](double x) { return x / scale; };
    result.gradients.push_back(with_values(gradient, transformed(values, wide, divide)));
  }
  return result;
}

void loss_scale::update(bool is_finite) {
  if (!is_dynamic_) return;
  if (!is_finite) {
    auto fallen = std::max(state_.scale * options_.backoff_factor, scale_min);
    state_ = {std::min(state_.scale, fallen), 0};
  } else if (++state_.finite_steps >= options_.growth_interval) {
    auto grown = state_.scale * options_.growth_factor;
    // A loss is f32 at least: beyond that, every step would be lost.
    state_ = {std::isfinite(static_cast<float>(grown)) ? grown : state_.scale, 0};
  }
}

void loss_scale::restore(const loss_scale_state& state) {
  check_scale(state.scale);
  state_ = state;
}

tensor to_tensor(const loss_scale_state& state) {
  tensor result{dtype::f64, {2}};
  auto numbers = result.mutable_values<double>();
  numbers[0] = state.scale;
  numbers[1] = static_cast<double>(state.finite_steps);
  return result;
}

loss_scale_state to_loss_scale_state(const tensor& kept) {
  constexpr double steps_max = 0x1p53;
  if (kept.type() == dtype::f64 && kept.extents() == shape{2}) {
    auto whole = kept.contiguous();
    auto numbers = whole.values<double>();
    if (numbers[1] >= 0 && numbers[1] <= steps_max)
      return {numbers[0], static_cast<uint64_t>(numbers[1])};
  }
  throw_failure(errc::invalid_argument,
                "loss scale: what was kept, {} of {}, is no scale and its steps",
                to_string(kept.extents()), to_string(kept.type()));
}

bool all_finite(const std::vector<gradient>& gradients) {
  return std::ranges::all_of(gradients, [](const gradient& gradient) {
    return cpu::count_non_finite({}, elements{values_of(gradient).contiguous()}) == 0;
  });
}

} // namespace troupe
