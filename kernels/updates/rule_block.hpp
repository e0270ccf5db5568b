// SPDX-License-Identifier: Apache-2.0
// The inner loop of every update: a rule applied to a block of elements.
#pragma once

#include "kernels/updates/update_rules.hpp"

#include <array>
#include <cstddef>

namespace troupe::cpu {

/// Slots in the state of an element: the rule's, or the most for a rule whose type is unknown.
template <class Rule>
inline constexpr size_t state_size = Rule::slot_names.size();

template <>
inline constexpr size_t state_size<rules::custom> = slot_count_max;

/// Where the elements of one block lie.
template <class T>
struct block {
  size_t count = 0;
  const T* gradient = nullptr;
  const T* before = nullptr;
  T* after = nullptr; ///< May be `before` or `gradient`.
  std::array<const T*, slot_count_max> slots_before{};
  std::array<T*, slot_count_max> slots_after{};
};

/// The rule for elements of type T; `norms(settings)` works out the norms of the whole variable for
/// a layer-wise rule.
template <class T, class Rule, class Norms>
[[nodiscard]] auto rule_for_elements(const Rule& settings, const Norms& norms) {
  using element_rule = typename Rule::template for_elements<T>;
  if constexpr (is_layer_wise_rule<Rule>)
    return element_rule{settings, norms(settings)};
  else
    return element_rule{settings};
}

/// Applies a rule to every element of a block. Compiled beside the rules, in `rules/*_cpu.cpp`.
template <class Rule, class T>
void apply_to(const block<T>& at, const typename Rule::template for_elements<T>& apply);

/// Sums of squares in 16 lanes: element i joins lane i mod 16.
struct squared_lanes {
  std::array<double, 16> variable{};
  std::array<double, 16> direction{};
};

/// Adds the squares of a block of the variable, and of the direction in which a layer-wise rule
/// would move it; writes nothing else. @pre The block begins at a multiple of 16.
template <class Rule, class T>
void add_squares(const block<T>& at, const typename Rule::template for_elements<T>& rule,
                 squared_lanes& sums);

} // namespace troupe::cpu

namespace troupe::rules {

template <class T>
template <size_t Slots>
T custom::for_elements<T>::operator()(T value, T gradient, std::array<T, Slots>& slots) const {
  cpu::block<T> single{1, &gradient, &value, &value};
  for (size_t slot = 0; slot < Slots; ++slot)
    single.slots_before[slot] = single.slots_after[slot] = &slots[slot];
  step(single);
  return value;
}

} // namespace troupe::rules
