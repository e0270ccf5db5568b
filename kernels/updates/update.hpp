// SPDX-License-Identifier: Apache-2.0
// The fused update: k gradients, a variable and its slots in one pass over memory.
#pragma once

#include "kernels/math/reduce.hpp"
#include "kernels/tensor/context.hpp"
#include "kernels/updates/update_rules.hpp"

#include <span>
#include <vector>

namespace troupe {

/// An array and its successor: the same memory, or disjoint if the old version is still in use
/// elsewhere.
template <class T>
struct replaced {
  std::span<const T> before;
  std::span<T> after;
};

/// An exponential moving average of a variable, brought up to date in the same pass:
/// shadow -= weight * (shadow - the variable's new value).
template <class T>
struct averaged {
  std::span<T> shadow; ///< Empty: there is no average.
  double weight = 0;   ///< 1 - decay.
};

/// `values`, replaced where they lie.
template <class T>
[[nodiscard]] replaced<T> in_place(std::span<T> values) {
  return {values, values};
}

/// The arguments of `update`, for several updates at once.
template <class T>
struct dense_update {
  update_rule rule;
  gradient_sum gradient;
  replaced<T> variable;
  std::vector<replaced<T>> slots;
  averaged<T> average;
};

/// Asserts that the arguments of an update fit together.
template <class T>
void check(const update_rule& rule, const gradient_sum& gradient, const replaced<T>& variable,
           std::span<const replaced<T>> slots, const averaged<T>& average) {
  size_t count = variable.after.size();
  check<T>(gradient, count);
  TROUPE_ASSERT(variable.before.size() == count, variable.before.size(), count);
  TROUPE_ASSERT(slots.size() == slot_count(rule), slots.size(), slot_count(rule));
  for (const auto& slot : slots) {
    TROUPE_ASSERT(slot.before.size() == count, slot.before.size(), count);
    TROUPE_ASSERT(slot.after.size() == count, slot.after.size(), count);
  }
  TROUPE_ASSERT(average.shadow.empty() || average.shadow.size() == count, average.shadow.size());
}

namespace reference {

/// Summing the gradients as they come, then applying the sum, moves about 3k arrays through memory.
/// This reads each of the k gradients, the variable and its slots once, and writes the variable and
/// its slots once; it reads and writes the moving average once, too, if there is one. T is f32 or
/// f64.
///
/// Layer-wise rules read everything once more, before, for the norms: sums of squares in double,
/// over chunks of `sum_chunk_elements` in 16 lanes (element i joins lane i mod 16, then lane l
/// joins lane l + 8, then 4, 2 and 1), the chunks added up in halves. The order is part of the
/// contract.
/// Shape: gradient  k x [n]           disjoint from the arrays that are written
///        variable  [n]
///        slots     slots of rule x [n]
///        average   [n] or empty
/// Cost:  (k + 2 + 2 slots) n elements moved, and (k + 1 + slots) n more if the rule is layer-wise
template <class T>
void update(const context&, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average = {});

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void update(const context&, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average = {});

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit; but for `ftrl` with another power than -0.5, which takes powers:
/// within some units in the last place of a power.
template <class T>
void update(const context&, const update_rule& rule, const gradient_sum& gradient,
            const replaced<T>& variable, std::span<const replaced<T>> slots,
            const averaged<T>& average = {});

/// Updates of variables that are apart, as one launch for several of them: small ones take less
/// time than their launches. @pre They are all of rules that GPUs have code for.
template <class T>
void update(const context&, std::span<const dense_update<T>> updates);

} // namespace cuda

} // namespace troupe
