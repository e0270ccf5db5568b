// SPDX-License-Identifier: Apache-2.0
// Checks of a plan, and the decay of averages.
#include "kernels/updates/update_plan.hpp"

#include <algorithm>
#include <functional>

namespace troupe {

double moving_average::decay_at(uint64_t update_number) const {
  if (!num_updates) return decay;
  auto n = static_cast<double>(update_number);
  return std::min(decay, (1 + n) / (10 + n));
}

expected<void> validate(const update_plan& plan) {
  setting_check check;
  update_plan::visit_settings(plan, std::ref(check));
  if (plan.average) moving_average::visit_settings(*plan.average, std::ref(check));
  if (auto result = check.result(); !result) return result;
  if (plan.clip.value_max > 0 && plan.clip.norm_max > 0)
    return fail(errc::invalid_argument,
                "clip_value and clip_norm exclude each other: set one of them to 0");
  if (plan.average && plan.average->name.empty())
    return fail(errc::invalid_argument, "a moving average needs a name");
  return validate(plan.schedule);
}

} // namespace troupe
