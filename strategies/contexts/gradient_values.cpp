// SPDX-License-Identifier: Apache-2.0
// Gives gradients what users may leave out: wide row numbers, extents, and the variable's dtype.
#include "strategies/contexts/gradient_values.hpp"

#include "kernels/math/cast.hpp"
#include "kernels/tensor/gradient_sum.hpp"
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

bool is_narrower(const gradient& given, dtype variable) {
  const auto* dense = std::get_if<tensor>(&given);
  auto type = (dense != nullptr ? *dense : std::get<indexed_slices>(given).values).type();
  return type != variable && widens_to(type, variable);
}

gradient widened(gradient given, dtype variable) {
  return is_narrower(given, variable) ? with_values(given, cast(values_of(given), variable))
                                      : given;
}

} // namespace troupe
