// SPDX-License-Identifier: Apache-2.0
// The checks that a gradient fits its variable, without actors.
#pragma once

#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/shape.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"
#include "messages/tensor.capnp.h"

#include <string>

namespace troupe {

/// The shape of an array in a message.
[[nodiscard]] shape to_shape(capnp::List<int64_t>::Reader extents);

/// The dtype and extents of a variable, which its gradients must fit.
struct variable_form {
  std::string name; ///< The variable's name, for messages.
  dtype type = dtype::f32;
  shape extents;
};

/// Checks that an optimizer can update a variable: it is f32 or f64. Errors: type_mismatch.
[[nodiscard]] expected<void> check_updatable(const variable_form& variable);

/// Checks a pushed gradient against its variable. A dense one has the variable's dtype and extents;
/// the rows of a sparse one have the variable's dtype, its extents but for the first, and one row
/// number each, i64, from 0 to below the first extent. A gradient "none" never fits: it has nothing
/// to average.
/// Cost: a few loads for a dense gradient, one pass over the row numbers of a sparse one.
/// Errors: type_mismatch, invalid_argument; the line names variable, expectation and what came.
[[nodiscard]] expected<void> check_gradient(const variable_form& variable,
                                            wire::Gradient::Reader gradient);

/// Checks that all numbers of a gradient are finite. @param name The variable, for the message.
/// Cost: one pass over the numbers. Errors: invalid_argument.
[[nodiscard]] expected<void> check_finite(const std::string& name, const gradient& gradient);

} // namespace troupe
