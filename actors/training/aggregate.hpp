// SPDX-License-Identifier: Apache-2.0
// The sum or mean of one step's gradients, for callers that want to see it.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <span>

namespace troupe {

/// The sum or mean of gradients of one dtype and row shape, added up in their order. Updates do not
/// need it: they read the gradients themselves. Sums of 16-bit floats are kept in f32 and rounded
/// once.
///
/// All dense: a dense one. All sparse: the rows that occur, ascending, each once; a row's mean is
/// over the gradients that hold it, as in TensorFlow. Some of each: dense.
/// @param divisor As in ApplyUpdate: the divisor of the sum; 0 = a mean.
/// @param declared The whole array's shape; -1 for the first extent of a sparse one if unknown, and
/// the extents behind it are those of the rows.
/// @pre There is at least one gradient, they fit together, and row numbers, if sparse ones are
/// among dense ones, lie in `declared`.
[[nodiscard]] gradient aggregate(std::span<const gradient> gradients, uint32_t divisor,
                                 const shape& declared);

} // namespace troupe
