// SPDX-License-Identifier: Apache-2.0
// The rows of an array that lies in a file.
#pragma once

#include "actors/recording/input_file.hpp"
#include "strategies/data/dataset.hpp"
#include "strategies/data/stored_numbers.hpp"

#include <optional>

namespace troupe {

/// An array as the header of its file describes it.
struct array_layout {
  uint64_t offset = 0; ///< Where its first byte lies in the file.
  stored_numbers numbers;
  std::vector<uint64_t> dims; ///< As the file says; not to be trusted yet.
};

/// One element for each number of the first dimension, with a tensor of the other dimensions.
/// @param type The tensors' type; if not said, the type that holds the numbers without loss.
/// Cost: one read for each element.
/// Errors: `malformed` if the array has no first dimension, more than 32, or not
/// exactly the bytes that are left of the file; `unimplemented` or `type_mismatch` for numbers that
/// no tensor, or none of this type, can hold.
[[nodiscard]] expected<dataset> array_rows(const input_file& file, const array_layout& layout,
                                           std::optional<dtype> type);

} // namespace troupe
