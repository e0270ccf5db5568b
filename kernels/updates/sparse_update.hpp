// SPDX-License-Identifier: Apache-2.0
// The fused update of the rows that sparse gradients touch.
#pragma once

#include "kernels/math/sparse.hpp"
#include "kernels/updates/update_rules.hpp"

namespace troupe {

/// Asserts that the arguments of a sparse update fit together.
template <class T>
void check(const update_rule& rule, const sparse_sum& gradient, std::span<T> variable,
           std::span<const std::span<T>> slots) {
  TROUPE_ASSERT(!is_layer_wise(rule), name_of(rule));
  check<T>(gradient, variable.size());
  TROUPE_ASSERT(slots.size() == slot_count(rule), slots.size(), slot_count(rule));
  for (const auto& slot : slots)
    TROUPE_ASSERT(slot.size() == variable.size(), slot.size(), variable.size());
}

namespace reference {

/// A step touches a few rows of an embedding; a dense update would move the whole table. This reads
/// the gradients' rows once, and reads and writes the touched rows of variable and slots once. It
/// is lazy: rows without a gradient stay as they are, their momentum too. T is f32 or f64.
/// @pre The rule is not layer-wise: the norms of a variable are those of all its rows.
/// Shape: variable  [rows, width]
///        slots     slots of rule x [rows, width]
template <class T>
void sparse_update(const context&, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void sparse_update(const context&, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots);

} // namespace cpu

namespace cuda {

/// As the reference, as far as `update` is. The order of the rows is memory of the host.
template <class T>
void sparse_update(const context&, const update_rule& rule, const sparse_sum& gradient,
                   std::span<T> variable, std::span<const std::span<T>> slots);

} // namespace cuda

} // namespace troupe
