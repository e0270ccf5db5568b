// SPDX-License-Identifier: Apache-2.0
// A frame in memory that ends where the frame ends.
#pragma once

#include "messages/decode.hpp"

#include <algorithm>
#include <memory>

namespace troupe::fuzz {

/// A copy of `frame` in an allocation of its own, so that the address sanitizer sees a read of a
/// byte beyond it.
[[nodiscard]] inline received_bytes received_exactly(std::span<const std::byte> frame) {
  std::shared_ptr<std::byte[]> copy{new std::byte[frame.size()]};
  std::ranges::copy(frame, copy.get());
  return {{copy.get(), frame.size()}, copy};
}

} // namespace troupe::fuzz
