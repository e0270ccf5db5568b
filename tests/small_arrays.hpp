// SPDX-License-Identifier: Apache-2.0
// Small arrays and rows, written and read as numbers.
#pragma once

#include "kernels/tensor/change.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/tensor.hpp"

#include <utility>
#include <vector>

namespace troupe::test {

using numbers = std::vector<double>;

/// The elements of an array, row by row.
[[nodiscard]] inline numbers numbers_of(const tensor& from) {
  auto whole = from.contiguous();
  auto copy = [](const auto& values) { return numbers(values.begin(), values.end()); };
  switch (from.type()) {
  case dtype::i32:
    return copy(whole.values<int32_t>());
  case dtype::i64:
    return copy(whole.values<int64_t>());
  case dtype::f64:
    return copy(whole.values<double>());
  default:
    return copy(whole.values<float>());
  }
}

/// An array of the given elements. @pre The counts agree; `type` is f32, f64, i32 or i64.
[[nodiscard]] inline tensor array(shape extents, const numbers& values, dtype type = dtype::f32) {
  auto result = zeros(std::move(extents), type);
  auto fill = [&](auto to) {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<typename decltype(to)::value_type>(values[i]);
  };
  if (type == dtype::i32)
    fill(result.mutable_values<int32_t>());
  else if (type == dtype::i64)
    fill(result.mutable_values<int64_t>());
  else if (type == dtype::f64)
    fill(result.mutable_values<double>());
  else
    fill(result.mutable_values<float>());
  return result;
}

/// An array without dimensions.
[[nodiscard]] inline tensor scalar(double value, dtype type = dtype::f32) {
  return array({}, {value}, type);
}

/// Rows of one element each, of an array of shape [height, 1].
[[nodiscard]] inline indexed_slices rows_of(const std::vector<int64_t>& indices,
                                            const numbers& values, int64_t height,
                                            dtype type = dtype::f32) {
  auto count = static_cast<int64_t>(indices.size());
  tensor places{dtype::i64, {count}};
  std::copy(indices.begin(), indices.end(), places.mutable_values<int64_t>().begin());
  return {places, array({count, 1}, values, type), {height, 1}};
}

/// Rows of an array of shape [3, 1] that do not have one number each. Replicas 0 and 1 have as many
/// numbers as rows together.
[[nodiscard]] inline indexed_slices miscounted_rows(uint32_t replica) {
  auto is_first = replica == 0;
  return {is_first ? array({2}, {0, 1}, dtype::i64) : array({1}, {2}, dtype::i64),
          is_first ? array({1, 1}, {5}) : array({2, 1}, {7, 9}),
          {3, 1}};
}

} // namespace troupe::test
