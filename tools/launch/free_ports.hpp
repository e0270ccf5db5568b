// SPDX-License-Identifier: Apache-2.0
// Ports of this machine that no process listens at.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// Draws different ports of 127.0.0.1 at which no process listens. Nothing keeps them free until a
/// task listens there. But they lie outside of the range that the kernel takes for outgoing
/// connections, and another job draws other ports.
/// Errors: `resource` if hardly any is free.
[[nodiscard]] expected<std::vector<uint16_t>> free_ports(size_t count);

} // namespace troupe
