// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step, for its curve.
#pragma once

#include "kernels/updates/update_plan.hpp"

#include <cstdint>

namespace troupe {

/// The learning rate of the update that leads to a step. @param step Counted from 1.
[[nodiscard]] inline double learning_rate_at(const update_plan& plan, uint64_t step) {
  return std::visit([](const auto& rule) { return rule.learning_rate; },
                    plan.schedule.at(plan.rule, step));
}

} // namespace troupe
