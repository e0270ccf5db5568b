// SPDX-License-Identifier: Apache-2.0
// From the tensors inside a message to tensors with elements that lie in the message.
#pragma once

#include "messages/payload.hpp"
#include "messages/tensor.capnp.h"

namespace troupe {

/// The tensor in place, read-only: its elements lie in the message, or on the device that it says,
/// and it keeps the message alive. A field that was not set, of a message of another schema, gives
/// `tensor{}`.
/// @param owner Keeps the message alive: `message.owner()`. @pre The message was checked.
/// Cost: one allocation for the extents. The elements are copied only if a peer's frame holds the
/// parts of a tensor apart from each other, which Troupe's own frames never do.
[[nodiscard]] tensor read_tensor(wire::Tensor::Reader from, std::shared_ptr<const void> owner);

/// The gradient in place, as `read_tensor`: dense, sparse or none.
[[nodiscard]] optional_gradient read_gradient(wire::Gradient::Reader gradient,
                                              const std::shared_ptr<const void>& owner);

} // namespace troupe
