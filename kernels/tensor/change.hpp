// SPDX-License-Identifier: Apache-2.0
// Changes of variables by hand: assign, add, scatter.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// An operation that changes an element by an operand. The values travel in messages (`Change` in
/// `messages/training.capnp`).
enum class change : uint8_t {
  assign = 0,
  add = 1,
  subtract = 2,
  multiply = 3,
  divide = 4, ///< Integers are cut towards 0.
  minimum = 5,
  maximum = 6,
};

/// Number of enumerators of `change`; a peer's value at or above it is malformed.
inline constexpr size_t change_count = 7;

/// "assign", "assign_add": the names of the operations on whole variables.
[[nodiscard]] std::string_view name_of_assign(change operation);

/// "scatter_update", "scatter_add": the names of the operations on rows.
[[nodiscard]] std::string_view name_of_scatter(change operation);

/// A row-major tensor with `value` in every element, cut towards 0 for integers.
/// @pre `type` is f32, f64, i32 or i64, and has a number near `value`.
[[nodiscard]] tensor filled(dtype type, const shape& extents, double value);

/// `operation(value[i], operand[i])` for every element, in memory of its own.
/// Shape: value, operand  any, of one dtype: f32, f64, i32 or i64
/// Errors: type_mismatch and invalid_argument if they do not agree; invalid_argument for an integer
/// divided by 0.
[[nodiscard]] expected<tensor> changed(const tensor& value, change operation,
                                       const tensor& operand);

/// `value` with `operation` applied to the rows that `operand` names, one after the other: a row
/// that occurs twice is changed twice.
/// Shape: value [rows, ...]; operand as `indexed_slices`, of the same dtype
/// Errors: as `changed`; out_of_range for a row that `value` does not have.
[[nodiscard]] expected<tensor> scattered(const tensor& value, change operation,
                                         const indexed_slices& operand);

} // namespace troupe
