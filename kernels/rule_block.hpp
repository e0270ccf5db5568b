// SPDX-License-Identifier: Apache-2.0
// The inner loop of every update: a rule applied to a block of elements.
#pragma once

#include "kernels/parallel.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace troupe::cpu {

/// Where the elements of one block lie.
template <class T, size_t slot_count>
struct block {
  size_t count;
  const T* gradient;
  const T* before;
  T* after; ///< May be `before` or `gradient`.
  std::array<const T*, slot_count> slots_before;
  std::array<T*, slot_count> slots_after;
};

/// Applies a rule to every element of a block; vectorised as a whole, so everything comes by value.
template <class T, class Apply, size_t... Slot>
void apply_to(block<T, sizeof...(Slot)> at, Apply apply, std::index_sequence<Slot...>) {
  TROUPE_INDEPENDENT
  for (size_t i = 0; i < at.count; ++i) {
    std::array<T, sizeof...(Slot)> state{at.slots_before[Slot][i]...};
    at.after[i] = apply(at.before[i], at.gradient[i], state);
    ((at.slots_after[Slot][i] = state[Slot]), ...);
  }
}

} // namespace troupe::cpu
