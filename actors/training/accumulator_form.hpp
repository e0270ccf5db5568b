// SPDX-License-Identifier: Apache-2.0
// What an accumulator of a user's own accepts, judged as TensorFlow's conditional accumulators do.
#pragma once

#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/shape.hpp"
#include "messages/errc.hpp"
#include "messages/tensor.capnp.h"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// What the gradients of a step become when they are taken.
enum class reduction : uint8_t {
  mean, ///< Dense: divided by the gradients accepted. Sparse: each row by those that hold it.
  sum,
};

/// The reduction called "MEAN" or "SUM". Errors: invalid_argument for any other name.
[[nodiscard]] expected<reduction> parse_reduction(std::string_view name);

/// What an accumulator accepts.
struct accumulator_form {
  enum class layout : uint8_t { dense, sparse };

  std::string name; ///< For messages.
  dtype type = dtype::f32;
  layout holds = layout::dense;
  /// An extent of -1 may be any; nothing declared accepts every shape, and so does rank 0 if
  /// sparse.
  std::optional<shape> declared;
};

/// Checks a gradient against the form, and against the gradients that are there already.
/// @param accumulated Shape of the first gradient accepted since the last take (of a sparse one,
/// its values'); null if there is none.
/// Errors: invalid_argument, in the order and with the words of TensorFlow's kernels.
/// Source: tensorflow/core/kernels/conditional_accumulator.h, sparse_conditional_accumulator.h.
[[nodiscard]] expected<void> check_gradient(const accumulator_form& form,
                                            wire::Gradient::Reader gradient,
                                            const shape* accumulated);

/// What later gradients are compared with: a dense gradient's shape, a sparse one's values'.
[[nodiscard]] shape accumulated_shape(wire::Gradient::Reader gradient);

} // namespace troupe
