// SPDX-License-Identifier: Apache-2.0
// The gradients that a user's accumulator accepts, by the rules of TensorFlow's accumulators.
#pragma once

#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/shape.hpp"
#include "messages/errors/errc.hpp"
#include "messages/tensor.capnp.h"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// How the gradients of a step are combined when they are taken.
enum class reduction : uint8_t {
  mean, ///< Dense: divided by the gradients accepted. Sparse: each row by those that hold it.
  sum,
};

/// The gradients that an accumulator accepts.
struct accumulator_form {
  enum class layout : uint8_t { dense, sparse };

  std::string name; ///< For messages.
  dtype type = dtype::f32;
  layout holds = layout::dense;
  /// An extent of -1 may be any; nothing declared accepts every shape, and so does rank 0 if
  /// sparse.
  std::optional<shape> declared;
};

/// Checks a gradient against the form, and against the gradients that were accepted before.
/// @param accumulated Shape of the first gradient accepted since the last take (of a sparse one,
/// its values'); null if there is none.
/// Errors: invalid_argument, in the order and with the words of TensorFlow's kernels.
/// Source: tensorflow/core/kernels/conditional_accumulator.h, sparse_conditional_accumulator.h.
[[nodiscard]] expected<void> check_gradient(const accumulator_form& form,
                                            wire::Gradient::Reader gradient,
                                            const shape* accumulated);

/// The shape that later gradients must fit: a dense gradient's own, or that of a sparse one's
/// values.
[[nodiscard]] shape accumulated_shape(wire::Gradient::Reader gradient);

} // namespace troupe
