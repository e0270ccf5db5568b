// SPDX-License-Identifier: Apache-2.0
// Packs: many small arrays laid behind each other, which are reduced as one.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Divides a batch into packs: a new pack begins once the current one is larger than
/// `bytes_per_pack`; 0: one pack. @returns The number of values in each pack.
[[nodiscard]] std::vector<size_t> pack_by_bytes(std::span<const size_t> bytes,
                                                int64_t bytes_per_pack);

/// The elements of arrays behind each other. Shape: result  [elements of all]
/// @pre They lie on the host and have one dtype; there is at least one.
[[nodiscard]] tensor laid_flat(std::span<const tensor> parts);

/// The arrays that lie behind each other in a flat one, as views.
/// @pre Together they have all elements of the flat array.
[[nodiscard]] std::vector<tensor> cut(const tensor& flat, std::span<const shape> extents);

} // namespace troupe
