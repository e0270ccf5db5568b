// SPDX-License-Identifier: Apache-2.0
// From the tensors inside a message to plain values that point into the message.
#pragma once

#include "messages/payload.hpp"
#include "messages/tensor.capnp.h"

namespace troupe {

/// The tensor in place: `data` points into the message, and `owner` becomes the payload's owner.
/// @param owner What keeps the message alive: `message.owner()`.
/// Cost: one allocation for the extents. The elements are copied only if a peer's frame holds the
/// parts of a tensor apart from each other, which Troupe's own frames never do.
[[nodiscard]] tensor_payload read_tensor(wire::Tensor::Reader tensor,
                                         std::shared_ptr<const void> owner);

/// Likewise for a gradient, dense, sparse or none.
[[nodiscard]] gradient_payload read_gradient(wire::Gradient::Reader gradient,
                                             const std::shared_ptr<const void>& owner);

} // namespace troupe
