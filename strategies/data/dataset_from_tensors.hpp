// SPDX-License-Identifier: Apache-2.0
// The rows of arrays in memory, as a dataset.
#pragma once

#include "strategies/data/dataset.hpp"

#include <variant>
#include <vector>

namespace troupe {

/// An array, or a list of equal ones that are stacked first.
using array_or_list = std::variant<tensor, std::vector<tensor>>;

/// The rows of arrays as examples: element i holds row i of each. The arrays are copied once, so
/// they may change afterwards.
/// Errors: throws `failure`: as `dataset::from_tensor_slices`; invalid_argument for lists that are
/// empty or of arrays that differ.
/// Source: TensorFlow, `Strategy.experimental_make_numpy_dataset`.
[[nodiscard]] dataset make_dataset_from_tensors(const std::vector<array_or_list>& arrays);

} // namespace troupe
