// SPDX-License-Identifier: Apache-2.0
// An optimizer's effect on one element: the only part in which optimizers differ.
#pragma once

#include "kernels/updates/choice.hpp"
#include "kernels/updates/rules/adam.hpp"
#include "kernels/updates/rules/adaptive.hpp"
#include "kernels/updates/rules/custom.hpp"
#include "kernels/updates/rules/descent.hpp"
#include "kernels/updates/rules/ftrl.hpp"
#include "kernels/updates/rules/layer_wise.hpp"
#include "messages/errors/errc.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace troupe {

// A rule is a struct of its settings with
//   name, visit_settings   as every choice has them (kernels/updates/choice.hpp),
//   slot_names             for the arrays of the variable's size that the optimizer keeps, and
//   for_elements           a template: what `settings` mean for elements of type T, worked out
//                          once, and operator()(value, gradient, slots), which returns the new
//                          value of one element and leaves the new slots in `slots`.
// To add an optimizer, write its rule and name it in `update_rule`; the passes over memory, dense
// and sparse, messages, files and options take it from there. Settings are double and rounded once
// to the variable's type. A program brings rules of its own by `kernels/updates/custom_rule.hpp`.

/// Any optimizer's rule.
using update_rule
  = std::variant<rules::sgd, rules::momentum, rules::lion, rules::adagrad, rules::rmsprop,
                 rules::centered_rmsprop, rules::adadelta, rules::adam, rules::adamw,
                 rules::amsgrad, rules::adamax, rules::nadam, rules::ftrl, rules::lars, rules::lamb,
                 rules::custom>;

/// The most slots that any rule has, those of programs included.
inline constexpr size_t slot_count_max = 4;

/// The rule of that name at its defaults: of this library, or registered in this process.
/// Errors: not_found, listing those there are.
[[nodiscard]] expected<update_rule> rule_of_name(std::string_view name);

/// Whether a rule's step depends on the norms of the whole variable (`rules/layer_wise.hpp`).
template <class Rule>
inline constexpr bool is_layer_wise_rule
  = std::constructible_from<typename Rule::template for_elements<double>, const Rule&,
                            rules::layer_norms>;

/// Whether the step of the rule chosen depends on the norms of the whole variable.
[[nodiscard]] constexpr bool is_layer_wise(const update_rule& rule) {
  return std::visit([]<class Rule>(const Rule&) { return is_layer_wise_rule<Rule>; }, rule);
}

/// Names of the arrays of the variable's size that the rule keeps beside it: "momentum", "m".
[[nodiscard]] constexpr std::span<const std::string_view> slot_names(const update_rule& rule) {
  return std::visit(
    [](const auto& settings) { return std::span<const std::string_view>{settings.slot_names}; },
    rule);
}

/// The number of the rule's slots.
[[nodiscard]] constexpr size_t slot_count(const update_rule& rule) {
  return slot_names(rule).size();
}

/// The value of a slot's elements before the first update. @pre `slot < slot_count(rule)`.
[[nodiscard]] double initial_slot_value(const update_rule& rule, size_t slot);

/// The rule as it is at one update of the variable. @param update_number From 1, when its slots
/// have their initial values.
[[nodiscard]] update_rule at_update(update_rule rule, uint64_t update_number);

/// Refuses settings that would turn every variable into NaN or move it away from the minimum. An
/// epsilon of 0, or one that f32 rounds to 0, is taken: then most rules that divide by the size of
/// gradients turn an element into NaN if its own were all 0, as the originals do.
/// Errors: invalid_argument; the line names the setting and its range.
[[nodiscard]] expected<void> validate(const update_rule& rule);

} // namespace troupe
