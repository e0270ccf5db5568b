// SPDX-License-Identifier: Apache-2.0
// The element of a dataset: a few tensors and a few texts that belong together.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// One example, or one batch of them: features and label, a line, a record. Tensors and texts each
/// have an order that all elements of a dataset share; the source says which is which. A text is
/// bytes, UTF-8 or not.
struct element {
  std::vector<tensor> tensors;
  std::vector<std::string> texts; ///< A batch has those of its first row, of the second, ...
  /// Rows of a batch that `batch` has made; 0: one example, or a function has made it anew. A
  /// function that makes batches of examples sets it, too, if these have no tensors.
  uint64_t rows = 0;
};

/// Elements as one, of so many rows: tensors gain a first dimension of `elements.size()`, texts
/// follow each other.
/// Shape: from element i's tensors[k]  [extents...]
///        to              tensors[k]  [elements, extents...]
/// Cost: a copy of all tensors.
/// Errors: `invalid_argument` if the elements differ in dtype, shape or number of tensors.
/// @pre There is at least one element.
[[nodiscard]] expected<element> stack(std::span<const element> elements);

/// Tensor `index` of each element, one behind the other, as a tensor of shape `extents`.
/// @pre They have the same type, and `extents` holds the elements of all.
[[nodiscard]] tensor in_sequence(std::span<const element> elements, size_t index, shape extents);

} // namespace troupe
