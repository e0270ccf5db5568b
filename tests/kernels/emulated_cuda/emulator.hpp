// SPDX-License-Identifier: Apache-2.0
// A GPU made of loops, so that kernels are executed where there is none.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace troupe::emulated {

// Device code is compiled by the C++ compiler against include/cuda_runtime.h. The emulator
// keeps these properties of a GPU:
//
// - Threads of a block are fibers. They change places at barriers and shuffles, and each block
//   begins them in an order of its own, drawn from a seed: a kernel that lacks a barrier reads
//   what is not written yet. A barrier that some threads of a block never reach aborts.
// - To ThreadSanitizer they are threads, which barriers alone put in order.
// - Work on a stream is done when a caller waits for it, or some time after a caller has looked
//   whether it is done: one that reads a result without waiting finds the old one.
// - A host function that calls the runtime aborts, and memory that is freed waits for those that
//   are queued.
// - Memory of the device cannot be read by the host: outside of the device's work its pages are
//   closed (SIGSEGV). Fresh blocks and shared arrays are full of NaN, and canaries behind each
//   block are looked at when it is freed.
// - Copies from pageable memory take the bytes at once, those from pinned memory later.
// - A graph that would copy from pageable memory, which may be gone when it is launched, is
// refused.
//
// It does not keep speed, caches and memory models, blocks side by side, reads of host memory by
// kernels (they go unnoticed), 2- and 3-dimensional grids.
//
// Thread: one lock for all; a stream's work runs on the thread that waits for it. Host functions,
// and what lies before them, run a moment later on a thread of the emulator's own.

/// Devices there are; 2 at first. @pre None is in use.
void set_device_count(int count);

/// Bytes that all devices have together; 1 GiB at first.
void set_memory_bytes(size_t bytes);

/// Lets every later call of the runtime fail with this code, as after a kernel that broke the
/// device; `cudaSuccess` mends it.
void break_device(cudaError_t code);

/// The seed that orders of threads are drawn from.
void set_thread_order(uint64_t seed);

/// Kernels that were run so far.
[[nodiscard]] size_t kernels_run();

/// Times so far that the host waited for a stream.
[[nodiscard]] size_t waits();

/// Bytes of pinned memory that there are at most; no end of them at first.
void set_pinned_bytes(size_t bytes);

/// Bytes of pinned memory that are taken now.
[[nodiscard]] size_t pinned_bytes();

/// Copies so far from memory of the host that is not pinned: CUDA keeps the host waiting for them.
[[nodiscard]] size_t pageable_copies();

/// Devices that may read the memory of others: by reader and other.
[[nodiscard]] std::set<std::pair<int, int>> readers_of_peers();

/// Pairs of devices, at most, of which one may read the memory of the other; no end at first.
void set_peers_max(size_t pairs);

/// Bytes so far that were copied from the host's memory to a device.
[[nodiscard]] uint64_t bytes_to_device();

/// Bytes so far that were copied from a device to the host's memory.
[[nodiscard]] uint64_t bytes_to_host();

/// Calls so far that concerned a stream, an event or a block of another device than the thread's
/// current one. CUDA takes most of them, and may open that device for them.
[[nodiscard]] size_t misplaced_calls();

/// Whether work that is written down makes no graph, as on a device without memory for one.
void refuse_graphs(bool refused);

/// Graphs that were launched so far.
[[nodiscard]] size_t graphs_launched();

/// Bytes of device memory that are taken now, canaries among them.
[[nodiscard]] size_t device_bytes();

} // namespace troupe::emulated
