// SPDX-License-Identifier: Apache-2.0
// Between the two ground floors: tensors as messages carry them, and as kernels compute with them.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/payload.hpp"

namespace troupe {

/// A message's view of `value`, sharing its memory. A strided view is copied first, since messages
/// carry row-major elements.
[[nodiscard]] tensor_payload to_payload(const tensor& value);

/// Likewise for a gradient.
[[nodiscard]] gradient_payload to_payload(const gradient& value);

/// A read-only tensor in the message's memory. @pre The payload came out of a checked message.
[[nodiscard]] tensor to_tensor(tensor_payload payload);

/// Likewise for a gradient. @pre It is not none.
[[nodiscard]] gradient to_gradient(gradient_payload payload);

} // namespace troupe
