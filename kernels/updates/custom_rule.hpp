// SPDX-License-Identifier: Apache-2.0
// Optimizers of a program's own: the type of a rule becomes an `update_rule` with a name.
#pragma once

#include "kernels/updates/rules/block_loop.hpp"
#include "kernels/updates/update_rules.hpp"

#include <concepts>
#include <string_view>
#include <type_traits>

namespace troupe {

/// The type of a rule: a struct like those in `kernels/updates/rules/`, default-constructible and
/// with
///   name, slot_names       static, as they have them, with at most `slot_count_max` slots;
///   learning_rate          a double, which schedules multiply;
///   visit_settings         for numbers and flags, not for lists;
///   for_elements<T>        for float and double, made of the settings alone: no layer-wise rule.
/// If it has them, these count, too:
///   initial_slot_value(i)  what the elements of slot i are before the first update, else 0;
///   step                   the number of the update from 1: a member, and no setting.
/// An exception of `for_elements` or `initial_slot_value` ends the job.
template <class Rule>
concept custom_rule_type
  = std::default_initializable<Rule> && std::copyable<Rule> && !is_layer_wise_rule<
      Rule> && Rule::slot_names.size() <= slot_count_max
    && requires(Rule rule) {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { rule.learning_rate } -> std::same_as<double&>;
  typename Rule::template for_elements<float>;
  typename Rule::template for_elements<double>;
};

namespace detail {

/// Shows all settings but the learning rate, which every rule has.
template <class Rule>
void visit_own_settings(Rule& rule, const auto& visit) {
  std::remove_const_t<Rule>::visit_settings(
    rule, [&](std::string_view name, auto& member, setting_range range) {
      static_assert(std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>);
      if (name != "learning_rate") visit(name, member, range);
    });
}

/// The rule in its own type.
template <custom_rule_type Rule>
Rule typed(const rules::custom& erased) {
  Rule rule;
  rule.learning_rate = erased.learning_rate;
  auto next = erased.values.begin();
  visit_own_settings(rule, [&]<class Member>(std::string_view, Member& member, setting_range) {
    member = static_cast<Member>(*next++);
  });
  if constexpr (requires { rule.step; }) rule.step = erased.step;
  return rule;
}

template <custom_rule_type Rule, class T>
rules::block_step<T> step_of(const rules::custom& erased) {
  return [apply = typename Rule::template for_elements<T>{typed<Rule>(erased)}](
           const cpu::block<T>& at) { cpu::apply_to<Rule>(at, apply); };
}

template <custom_rule_type Rule>
double initial_slot_value(const rules::custom& erased, size_t slot) {
  if constexpr (requires(const Rule rule) { rule.initial_slot_value(slot); })
    return typed<Rule>(erased).initial_slot_value(slot);
  else
    return 0;
}

template <custom_rule_type Rule>
rules::custom_code make_code() {
  const Rule defaults;
  rules::custom_code code{.name = Rule::name,
                          .slot_names = Rule::slot_names,
                          .learning_rate = defaults.learning_rate,
                          .settings = {},
                          .initial_slot_value = &initial_slot_value<Rule>,
                          .step_of_floats = &step_of<Rule, float>,
                          .step_of_doubles = &step_of<Rule, double>};
  visit_own_settings(defaults, [&](std::string_view name, const auto& value, setting_range range) {
    code.settings.push_back({name, static_cast<double>(value), range});
  });
  return code;
}

template <custom_rule_type Rule>
const rules::custom_code& code_of() {
  static const auto code = make_code<Rule>();
  return code;
}

/// As the public function; the code outlives the process' last update.
[[nodiscard]] expected<void> register_rule(const rules::custom_code& code);

} // namespace detail

/// Code does not travel, so owners find a rule by its name. This makes it known in this process,
/// and is called once in every process of a job, before the job begins.
/// Thread: any.
/// Errors: invalid_argument for a name that is empty or taken.
template <custom_rule_type Rule>
[[nodiscard]] expected<void> register_rule() {
  return detail::register_rule(detail::code_of<Rule>());
}

/// The rule with these settings, for optimizers and plans.
template <custom_rule_type Rule>
[[nodiscard]] update_rule custom_rule(const Rule& settings) {
  rules::custom rule{detail::code_of<Rule>()};
  rule.learning_rate = settings.learning_rate;
  auto next = rule.values.begin();
  detail::visit_own_settings(settings, [&](std::string_view, const auto& value, setting_range) {
    *next++ = static_cast<double>(value);
  });
  return rule;
}

} // namespace troupe
