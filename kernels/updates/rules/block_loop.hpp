// SPDX-License-Identifier: Apache-2.0
// The loops over a block, for the files beside the rules that compile them.
#pragma once

#include "kernels/tensor/parallel.hpp"
#include "kernels/updates/rule_block.hpp"

#include <tuple>
#include <utility>

namespace troupe::cpu {

/// The loop of `apply_to`; vectorised as a whole, so everything comes by value.
template <class T, class Apply, size_t... Slot>
void loop_over(block<T> at, Apply apply, std::index_sequence<Slot...>) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < at.count; ++i) {
    std::array<T, sizeof...(Slot)> state{at.slots_before[Slot][i]...};
    at.after[i] = apply(at.before[i], at.gradient[i], state);
    ((at.slots_after[Slot][i] = state[Slot]), ...);
  }
}

template <class Rule, class T>
void apply_to(const block<T>& at, const typename Rule::template for_elements<T>& apply) {
  constexpr std::make_index_sequence<Rule::slot_names.size()> slots;
  auto loop = [&](auto form) { vectorised([=] { loop_over(at, form, slots); }); };
  // A choice that is the same for all elements stays outside the loop, where it costs no vectors.
  if constexpr (requires { apply.choose_form(loop); })
    apply.choose_form(loop);
  else
    loop(apply);
}

/// Adds the squares of element i to those of a lane.
template <class T, class Rule, size_t... Slot>
void add_square(const block<T>& at, const Rule& rule, size_t i, size_t lane, squared_lanes& sums,
                std::index_sequence<Slot...>) {
  std::array<T, sizeof...(Slot)> state{at.slots_before[Slot][i]...};
  auto value = static_cast<double>(at.before[i]);
  auto direction = static_cast<double>(rule.direction(at.before[i], at.gradient[i], state));
  sums.variable[lane] += value * value;
  sums.direction[lane] += direction * direction;
}

/// The loop of `add_squares`, with its arguments by value, too.
template <class T, class Rule, class Slots>
squared_lanes with_squares(squared_lanes sums, block<T> at, Rule rule, Slots slots) {
  constexpr size_t lanes = std::tuple_size_v<decltype(sums.variable)>;
  size_t whole = at.count - at.count % lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      add_square(at, rule, i + lane, lane, sums, slots);
  for (size_t i = whole; i < at.count; ++i)
    add_square(at, rule, i, i - whole, sums, slots);
  return sums;
}

template <class Rule, class T>
void add_squares(const block<T>& at, const typename Rule::template for_elements<T>& rule,
                 squared_lanes& sums) {
  constexpr std::make_index_sequence<Rule::slot_names.size()> slots;
  vectorised([=, &sums] { sums = with_squares(sums, at, rule, slots); });
}

} // namespace troupe::cpu

/// Compiles the loop of a rule for the types that variables have.
#define TROUPE_COMPILE_RULE(Rule)                                                                  \
  template void apply_to<Rule>(const block<float>&, const Rule::for_elements<float>&);             \
  template void apply_to<Rule>(const block<double>&, const Rule::for_elements<double>&);

/// Compiles the loop of a layer-wise rule, and that of the sums that it needs before.
#define TROUPE_COMPILE_LAYER_WISE_RULE(Rule)                                                       \
  TROUPE_COMPILE_RULE(Rule)                                                                        \
  template void add_squares<Rule>(const block<float>&, const Rule::for_elements<float>&,           \
                                  squared_lanes&);                                                 \
  template void add_squares<Rule>(const block<double>&, const Rule::for_elements<double>&,         \
                                  squared_lanes&);
