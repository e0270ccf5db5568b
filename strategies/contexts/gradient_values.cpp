// SPDX-License-Identifier: Apache-2.0
// Completes sparse gradients by what users may leave out.
#include "strategies/contexts/gradient_values.hpp"

#include "strategies/reduce/on_host.hpp"

#include <algorithm>

namespace troupe {

indexed_slices with_wide_indices(indexed_slices slices) {
  check_on_host(slices.indices);
  if (slices.indices.type() != dtype::i32) return slices;
  tensor wide{dtype::i64, slices.indices.extents()};
  auto narrow = slices.indices.contiguous();
  std::ranges::copy(narrow.values<int32_t>(), wide.mutable_values<int64_t>().begin());
  slices.indices = wide;
  return slices;
}

gradient completed(gradient given, const shape& extents) {
  auto* rows = std::get_if<indexed_slices>(&given);
  if (rows == nullptr) return given;
  auto slices = with_wide_indices(std::move(*rows));
  if (slices.dense_extents.rank() == 0) slices.dense_extents = extents;
  return slices;
}

} // namespace troupe
