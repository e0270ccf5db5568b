// SPDX-License-Identifier: Apache-2.0
// Turns options into a schedule and an optimizer with its settings.
#include "tools/train/plan.hpp"

#include "actors/training/optimizer_settings.hpp"

#include <algorithm>

namespace troupe {

namespace {

learning_rate_schedule schedule_of(const train_options& options, uint64_t steps) {
  auto updates = std::max<uint64_t>(steps - std::min(steps, options.warm_up), 1);
  learning_rate_schedule schedule;
  if (options.learning_rate_decay == decay_kind::linear) schedule = linear_decay(updates);
  if (options.learning_rate_decay == decay_kind::cosine)
    schedule.shape = schedules::cosine{.updates = updates};
  schedule.warm_up_updates = options.warm_up;
  return schedule;
}

} // namespace

expected<update_plan> plan_of(const train_options& options, uint64_t steps) {
  auto rate = options.learning_rate.value_or(default_learning_rate(options.optimizer));
  optimizer_settings settings{std::string{options.optimizer}, {{"learning_rate", rate}}};
  for (const auto& [name, value] : options.optimizer_settings)
    settings.settings.emplace_back(name, value);
  return to_plan(settings).map([&](update_plan plan) {
    plan.schedule = schedule_of(options, steps);
    return plan;
  });
}

} // namespace troupe
