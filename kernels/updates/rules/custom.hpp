// SPDX-License-Identifier: Apache-2.0
// A rule that a program brings, without its type: its settings, and its step on a block.
#pragma once

#include "kernels/updates/rules/setting.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::cpu {

template <class T>
struct block;

} // namespace troupe::cpu

namespace troupe::rules {

struct custom;

/// Moves the elements of a block as a rule with certain settings does at a certain update.
/// Thread: any; several blocks at once.
template <class T>
using block_step = std::function<void(const cpu::block<T>&)>;

/// A number among the settings of a rule.
struct custom_setting {
  std::string_view name;
  double value = 0; ///< Its default; a flag is 0 or 1.
  setting_range range = setting_range::non_negative;
};

/// The code of a rule and its defaults: one object for each type, as old as the process.
struct custom_code {
  std::string_view name;
  std::span<const std::string_view> slot_names;
  double learning_rate = 0;
  std::vector<custom_setting> settings; ///< All but the learning rate.
  double (*initial_slot_value)(const custom&, size_t slot) = nullptr;
  block_step<float> (*step_of_floats)(const custom&) = nullptr;
  block_step<double> (*step_of_doubles)(const custom&) = nullptr;
};

/// A rule that is not of this library. It has the members that every rule has, so that messages,
/// schedules and passes over memory treat it like the others; `custom_rule` makes one.
struct custom {
  /// The rule at its defaults. @param rule_code Outlives this.
  explicit custom(const custom_code& rule_code)
    : code(&rule_code), name(rule_code.name), slot_names(rule_code.slot_names),
      learning_rate(rule_code.learning_rate) {
    for (const auto& setting : code->settings)
      values.push_back(setting.value);
  }

  const custom_code* code;
  std::string_view name;
  std::span<const std::string_view> slot_names;
  double learning_rate;
  std::vector<double> values; ///< In the order of the code's settings.
  uint64_t step = 1;

  /// The value of a slot's elements before the first update.
  [[nodiscard]] double initial_slot_value(size_t slot) const {
    return code->initial_slot_value(*this, slot);
  }

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    for (size_t i = 0; i < rule.values.size(); ++i)
      visit(rule.code->settings[i].name, rule.values[i], rule.code->settings[i].range);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const custom& settings);

    /// One element, as a block of one.
    template <size_t Slots>
    T operator()(T value, T gradient, std::array<T, Slots>& slots) const;

    block_step<T> step;
  };
};

} // namespace troupe::rules
