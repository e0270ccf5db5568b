// SPDX-License-Identifier: Apache-2.0
// Where an iterator stands, as a checkpoint can hold it.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Where an iterator stands.
struct data_position {
  uint64_t delivered = 0; ///< Elements of this pass that were delivered.
  uint64_t pass = 0;
};

/// How many were delivered, how many there are (-1 for `UINT64_MAX`, without end), and the pass.
/// Shape: [3] i64
[[nodiscard]] tensor make_position(const data_position& at, uint64_t size);

/// Reads a position; one of two numbers stands in pass 0.
/// @param size How many there are now. @param things Their name in errors: "elements".
/// Errors: `invalid_argument` if it is no position, or one among another number of them.
[[nodiscard]] expected<data_position> read_position(const tensor& position, uint64_t size,
                                                    std::string_view things);

} // namespace troupe
