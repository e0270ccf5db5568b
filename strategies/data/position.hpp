// SPDX-License-Identifier: Apache-2.0
// Where an iterator stands, as a checkpoint can hold it.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errc.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// How many were delivered, and how many there are: -1 for `UINT64_MAX`, without end.
/// Shape: [2] i64
[[nodiscard]] tensor make_position(uint64_t delivered, uint64_t size);

/// How many were delivered at a position.
/// @param size How many there are now. @param things What they are called: "elements".
/// Errors: `invalid_argument` if it is no position, or one among another number of them.
[[nodiscard]] expected<uint64_t> read_position(const tensor& position, uint64_t size,
                                               std::string_view things);

} // namespace troupe
