// SPDX-License-Identifier: Apache-2.0
// The inner loop of every update: a rule applied to a block of elements.
#pragma once

#include "kernels/update_rules.hpp"

#include <array>
#include <cstddef>

namespace troupe::cpu {

/// The most slots that any rule has.
inline constexpr size_t slot_count_max = 3;

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
