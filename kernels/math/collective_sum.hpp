// SPDX-License-Identifier: Apache-2.0
// Adding up contributions, of any dtype, in their order.
#pragma once

#include "kernels/tensor/elements.hpp"

#include <span>

namespace troupe {

/// out = ((s0 + s1) + s2) + ... On the calling thread alone: many processes of a machine do so at
/// the same time. Integers wrap around; 16-bit types are added up in f32 and rounded once.
/// Shape: sources  k x [n], k >= 1; of out's type, or f32 where that has 16 bits
///        out      [n]  disjoint from the sources
void sum_in_order(std::span<const elements> sources, const mutable_elements& out);

} // namespace troupe
