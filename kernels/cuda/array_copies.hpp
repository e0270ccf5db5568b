// SPDX-License-Identifier: Apache-2.0
// Many arrays, copied by few kernels.
#pragma once

#include "kernels/cuda/context.hpp"

#include <cstddef>
#include <span>

namespace troupe::cuda {

/// Where an array of the device comes from, and where it goes there.
struct array_copy {
  const void* from = nullptr;
  void* to = nullptr; ///< Overlaps nothing that is copied with it.
  size_t bytes = 0;
};

/// Queues copies within the device's memory: the variables of a model are many, most of them small,
/// and to queue a copy takes the host longer than the device needs for it.
void copy_arrays(const context& on, std::span<const array_copy> copies);

} // namespace troupe::cuda
