// SPDX-License-Identifier: Apache-2.0
// The formulas of the schedules.
#include "kernels/updates/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace troupe {

namespace {

/// `part` of `whole`.
double share(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

namespace schedules {

double constant::factor(uint64_t) const {
  return 1;
}

double piecewise::factor(uint64_t done) const {
  auto piece = std::ranges::lower_bound(boundaries, done) - boundaries.begin();
  return factors[static_cast<size_t>(piece)];
}

double exponential::factor(uint64_t done) const {
  auto periods = share(done, updates);
  return std::pow(decay_rate, staircase ? std::floor(periods) : periods);
}

double polynomial::factor(uint64_t done) const {
  auto period = updates;
  if (cycle) period *= std::max<uint64_t>((done + updates - 1) / updates, 1);
  auto left = period - std::min(done, period);
  return (1 - end_factor) * std::pow(share(left, period), power) + end_factor;
}

double cosine::factor(uint64_t done) const {
  auto angle = std::numbers::pi * share(std::min(done, updates), updates);
  return (1 - alpha) * (0.5 * (1 + std::cos(angle))) + alpha;
}

} // namespace schedules

double learning_rate_schedule::factor(uint64_t update_number) const {
  auto done = update_number - 1;
  if (done < warm_up_updates)
    return (1 - warm_up_from) * share(done, warm_up_updates) + warm_up_from;
  return std::visit([&](const auto& course) { return course.factor(done - warm_up_updates); },
                    shape);
}

update_rule learning_rate_schedule::at(update_rule rule, uint64_t update_number) const {
  std::visit([&](auto& settings) { settings.learning_rate *= factor(update_number); }, rule);
  return rule;
}

learning_rate_schedule linear_decay(uint64_t updates) {
  if (updates == 0) return {};
  return {.shape = schedules::polynomial{.updates = updates}};
}

expected<void> validate(const learning_rate_schedule& schedule) {
  setting_check check;
  learning_rate_schedule::visit_settings(schedule, std::ref(check));
  if (auto result = check.result(); !result) return result;
  const auto* pieces = std::get_if<schedules::piecewise>(&schedule.shape);
  if (pieces == nullptr) return {};
  if (pieces->factors.size() != pieces->boundaries.size() + 1)
    return fail(errc::invalid_argument,
                "schedule piecewise has " + std::to_string(pieces->factors.size())
                  + " factors: it must have one more than its "
                  + std::to_string(pieces->boundaries.size()) + " boundaries");
  if (std::ranges::adjacent_find(pieces->boundaries, std::greater_equal{})
      != pieces->boundaries.end())
    return fail(errc::invalid_argument, "schedule piecewise: boundaries must ascend");
  return {};
}

} // namespace troupe
