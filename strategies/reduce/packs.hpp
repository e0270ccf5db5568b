// SPDX-License-Identifier: Apache-2.0
// Many arrays as one: what is reduced together costs less.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Where packs of a batch end: begins a new one once the current one is larger than
/// `bytes_per_pack`; 0: all in one. @returns The number of values in each pack.
[[nodiscard]] std::vector<size_t> pack_by_bytes(std::span<const size_t> bytes,
                                                int64_t bytes_per_pack);

/// The elements of arrays behind each other. Shape: result  [elements of all]
/// @pre They lie on the host and have one dtype; there is at least one.
[[nodiscard]] tensor laid_flat(std::span<const tensor> parts);

/// The arrays that lie behind each other in a flat one, as views.
/// @pre They have all its elements.
[[nodiscard]] std::vector<tensor> cut(const tensor& flat, std::span<const shape> extents);

} // namespace troupe
