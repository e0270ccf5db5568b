// SPDX-License-Identifier: Apache-2.0
// Where pools get the memory of a GPU from, and memory of the host that a GPU can reach.
#pragma once

#include "kernels/tensor/buffer.hpp"
#include "messages/errors/errc.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::cuda {

/// Memory of a GPU. A pool over it hands a block that was freed to the next caller, although work
/// that uses it may still be queued: so a pool belongs to one stream, and its order keeps the two
/// apart. A caller that lets another stream use a block keeps it until that stream has done so.
[[nodiscard]] std::shared_ptr<memory_source> device_memory(int device_index);

/// Memory of a GPU for the capture of a graph: blocks that come back lie untouched until the source
/// is destroyed, since the graph goes on using them.
[[nodiscard]] std::shared_ptr<memory_source> lasting_device_memory(int device_index);

/// Page-locked memory of the host: a GPU copies from and to it without the CPU's help.
[[nodiscard]] std::shared_ptr<memory_source> pinned_memory(int device_index);

/// Whether memory of the host is page-locked, wherever it came from. Asks on the device that is to
/// read it: on a thread without one CUDA would take up its first device for that.
[[nodiscard]] bool is_pinned(int device_index, const void* at);

/// Bytes of a GPU's memory.
struct memory_use {
  size_t free_bytes = 0; ///< To any process that asks.
  size_t total_bytes = 0;
};

[[nodiscard]] expected<memory_use> memory_of(int device_index);

/// The failure to allocate memory that a device reaches: resource, with this line; unavailable, if
/// the device is lost, which gives no memory either.
[[nodiscard]] tl::unexpected<error> no_memory(int device_index, std::string line);

} // namespace troupe::cuda
