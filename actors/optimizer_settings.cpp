// SPDX-License-Identifier: Apache-2.0
// The names of the optimizers and of their settings, once.
#include "actors/optimizer_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <type_traits>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view name_of(const rules::sgd&) {
  return "sgd";
}

constexpr std::string_view name_of(const rules::momentum&) {
  return "momentum";
}

constexpr std::string_view name_of(const rules::adam&) {
  return "adam";
}

// Shows every setting of a rule to `visit(name, member)`. The step of an update is no setting: the
// owner counts it.
template <class Visit>
void visit_settings(rules::sgd& rule, Visit visit) {
  visit("learning_rate", rule.learning_rate);
  visit("weight_decay", rule.weight_decay);
}

template <class Visit>
void visit_settings(rules::momentum& rule, Visit visit) {
  visit("learning_rate", rule.learning_rate);
  visit("momentum", rule.decay);
  visit("nesterov", rule.nesterov);
  visit("weight_decay", rule.weight_decay);
}

template <class Visit>
void visit_settings(rules::adam& rule, Visit visit) {
  visit("learning_rate", rule.learning_rate);
  visit("beta1", rule.beta1);
  visit("beta2", rule.beta2);
  visit("epsilon", rule.epsilon);
}

template <class Visit>
void visit_settings(update_rule& rule, Visit visit) {
  std::visit([&](auto& settings) { visit_settings(settings, visit); }, rule);
}

std::string_view name_of(const update_rule& rule) {
  return std::visit([](const auto& settings) { return name_of(settings); }, rule);
}

constexpr std::string_view decay_setting = "linear_decay_updates"; // of the schedule, not the rule

expected<void> apply_setting(update_rule& rule, const std::string& name, double value) {
  if (name == decay_setting) return {};
  auto found = false;
  std::vector<std::string_view> names;
  visit_settings(rule, [&](std::string_view setting, auto& member) {
    names.push_back(setting);
    if (setting != name) return;
    found = true;
    member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  });
  if (found) return {};
  return fail(errc::not_found, fmt::format("optimizer {} has no setting '{}'; it has {}",
                                           name_of(rule), name, fmt::join(names, ", ")));
}

} // namespace

optimizer_settings to_settings(const update_rule& rule, const learning_rate_schedule& schedule) {
  optimizer_settings result{std::string{name_of(rule)}, {}};
  auto copy = rule;
  visit_settings(copy, [&](std::string_view name, auto& member) {
    result.settings.emplace_back(name, static_cast<double>(member));
  });
  if (schedule.linear_decay_updates > 0)
    result.settings.emplace_back(decay_setting, static_cast<double>(schedule.linear_decay_updates));
  return result;
}

expected<learning_rate_schedule> to_schedule(const optimizer_settings& optimizer) {
  constexpr double exact_integers_end = 0x1p53;
  learning_rate_schedule schedule;
  for (const auto& [name, value] : optimizer.settings) {
    if (name != decay_setting) continue;
    if (!(value >= 0 && value < exact_integers_end))
      return fail(
        errc::invalid_argument,
        fmt::format("{} is {}; give a number of updates, or 0 for a constant rate", name, value));
    schedule.linear_decay_updates = static_cast<uint64_t>(value);
  }
  return schedule;
}

expected<update_rule> to_rule(const optimizer_settings& optimizer) {
  for (update_rule rule :
       {update_rule{rules::sgd{}}, update_rule{rules::momentum{}}, update_rule{rules::adam{}}}) {
    if (optimizer.name != name_of(rule)) continue;
    for (const auto& [name, value] : optimizer.settings)
      if (auto applied = apply_setting(rule, name, value); !applied)
        return tl::unexpected<error>(applied.error());
    if (auto valid = validate(rule); !valid) return tl::unexpected<error>(valid.error());
    return rule;
  }
  return fail(errc::not_found,
              fmt::format("no optimizer '{}'; there are sgd, momentum and adam", optimizer.name));
}

} // namespace troupe
