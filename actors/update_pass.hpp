// SPDX-License-Identifier: Apache-2.0
// One update of one variable: from gradients as they lie in messages to the right kernel.
#pragma once

#include "actors/tensor_payload.hpp"
#include "kernels/update_rules.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A variable, the arrays that its optimizer keeps beside it, and how many updates they include.
struct variable_state {
  tensor value; ///< f32 or f64, contiguous.
  std::vector<tensor> slots;
  uint64_t version = 0;
};

/// Applies the gradients of one step, in their order. All dense: one fused pass. All sparse: only
/// the rows that occur, and each row's mean is over the gradients that hold it; other rows and
/// their slots rest ("lazy"). Some of each: the sparse ones are made dense first.
///
/// Whoever holds `state.value` keeps the old version: the new one is written to fresh memory, or
/// where the old one lies if nobody else holds it.
/// @param divisor What sums are divided by; 0 = the number of gradients.
/// @pre The gradients fit the variable (`check_gradient`), and there is at least one.
void update_variable(variable_state& state, const update_rule& rule,
                     std::span<const gradient> gradients, uint32_t divisor);

} // namespace troupe
