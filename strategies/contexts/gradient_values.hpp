// SPDX-License-Identifier: Apache-2.0
// Reads and replaces the elements of gradients, dense or sparse, and completes and widens them.
#pragma once

#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/failure.hpp"

#include <string>
#include <utility>

namespace troupe {

/// The elements of a gradient, or of its rows. Errors: throws `failure` with type_mismatch if they
/// are not floating, failed_precondition if they lie on a device.
[[nodiscard]] inline const tensor& values_of(const gradient& gradient) {
  const auto* dense = std::get_if<tensor>(&gradient);
  const auto& values = dense != nullptr ? *dense : std::get<indexed_slices>(gradient).values;
  if (!is_floating(values.type()))
    throw failure{{errc::type_mismatch, "a gradient is " + std::string{to_string(values.type())}
                                          + "; only floating ones can be scaled or clipped"}};
  values.check_on_host();
  return values;
}

/// The same gradient with other elements.
[[nodiscard]] inline gradient with_values(const gradient& original, tensor values) {
  if (std::holds_alternative<tensor>(original)) return values;
  auto slices = std::get<indexed_slices>(original);
  slices.values = std::move(values);
  return slices;
}

/// The same rows, their numbers as i64 if they are i32.
[[nodiscard]] indexed_slices with_wide_indices(indexed_slices slices);

/// A gradient, or the operand of a scatter, as owners and accumulators take it: row numbers are
/// i64, and rows without dense extents get those of the variable.
/// @param extents The variable's extents. Cost: a pass over the row numbers, if they are i32.
/// Errors: throws `failure` with invalid_argument for row numbers that lie on a device.
[[nodiscard]] gradient completed(gradient given, const shape& extents);

/// Whether the numbers of a gradient are of a narrower floating type than a variable's: f16 or bf16
/// for f32, all of them for f64.
[[nodiscard]] bool is_narrower(const gradient& given, dtype variable);

/// A gradient in the dtype of its variable, if it is narrower; else as it is. Cost: a pass over a
/// narrower one. Errors: throws `failure` with failed_precondition for such a one on a device.
[[nodiscard]] gradient widened(gradient given, dtype variable);

/// `function(x)` for every element x, worked out in double and rounded to `type`.
template <class Function>
[[nodiscard]] tensor transformed(const tensor& values, dtype type, const Function& function) {
  auto from = values.contiguous();
  tensor result{type, values.extents()};
  visit_floating(from.type(), [&]<class From>(From) {
    visit_floating(type, [&]<class To>(To) {
      auto in = from.values<From>();
      auto out = result.mutable_values<To>();
      for (size_t i = 0; i < in.size(); ++i)
        out[i] = narrow<To>(function(widen<double>(in[i])));
    });
  });
  return result;
}

} // namespace troupe
