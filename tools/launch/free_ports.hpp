// SPDX-License-Identifier: Apache-2.0
// Ports of this machine that no process listens at.
#pragma once

#include "messages/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// Draws ports of 127.0.0.1 that are free, all different. Nothing keeps them free until a task
/// listens there; but no outgoing connection is given one of them, as it could be with
/// those that the kernel offers when asked for any, and another job draws others.
/// Errors: `resource` if hardly any is free.
[[nodiscard]] expected<std::vector<uint16_t>> free_ports(size_t count);

} // namespace troupe
