// SPDX-License-Identifier: Apache-2.0
// How the learning rate changes over the updates of a job.
#pragma once

#include "kernels/update_rules.hpp"

#include <cstdint>
#include <variant>

namespace troupe {

/// Long strides find the valley, short ones its floor: a rate that falls towards the end of a job
/// reaches a lower loss than any constant one.
struct learning_rate_schedule {
  /// The rate falls in a straight line, from the rule's own at the first update to 0 after so many;
  /// 0 = it stays constant.
  uint64_t linear_decay_updates = 0;

  /// What the rule's rate is multiplied with. @param update_number From 1.
  [[nodiscard]] double factor(uint64_t update_number) const {
    if (linear_decay_updates == 0) return 1;
    auto done = update_number - 1;
    if (done >= linear_decay_updates) return 0;
    return static_cast<double>(linear_decay_updates - done)
           / static_cast<double>(linear_decay_updates);
  }

  /// The rule as it is at one update.
  [[nodiscard]] update_rule at(update_rule rule, uint64_t update_number) const {
    std::visit([&](auto& settings) { settings.learning_rate *= factor(update_number); }, rule);
    return rule;
  }
};

} // namespace troupe
