// SPDX-License-Identifier: Apache-2.0
// Functions that all rules share: initial values of slots, numbers of updates, checks of settings.
#include "kernels/updates/update_rules.hpp"

#include <functional>

namespace troupe {

double initial_slot_value(const update_rule& rule, size_t slot) {
  if (const auto* custom = std::get_if<rules::custom>(&rule))
    return custom->initial_slot_value(slot);
  double result = 0;
  if (slot_names(rule)[slot] == "accumulator")
    visit_settings(rule, [&](std::string_view name, const auto& member, setting_range) {
      if (name == "initial_accumulator_value") result = static_cast<double>(member);
    });
  return result;
}

update_rule at_update(update_rule rule, uint64_t update_number) {
  std::visit(
    [&](auto& settings) {
      if constexpr (requires { settings.step; }) settings.step = update_number;
    },
    rule);
  return rule;
}

expected<void> validate(const update_rule& rule) {
  setting_check check;
  visit_settings(rule, std::ref(check));
  return check.result();
}

} // namespace troupe
