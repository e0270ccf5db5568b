// SPDX-License-Identifier: Apache-2.0
// Memory for tensors, recycled instead of returned to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Where a tensor's bytes lie.
enum class device_kind : uint8_t { cpu = 0, cuda = 1 };

/// A device: its kind and its index among those of that kind ("cpu:0", "cuda:1").
struct device {
  device_kind kind = device_kind::cpu;
  int index = 0;
  bool operator==(const device&) const = default;
};

/// A training step allocates and frees the same few sizes over and over; fresh memory costs a page
/// fault per 4 KiB, which halves the bandwidth of large tensors. A pool keeps what was freed.
///
/// Every block is aligned to `alignment` bytes, and the bytes from the requested size up to the
/// next multiple of 8 are zero, so that a message may refer to the block without leaking old
/// contents. Thread: all members may be called from any thread; a block may be freed on another
/// thread.
class buffer_pool {
public:
  static constexpr size_t alignment = 64;

  /// @param bytes_kept_max Freed blocks beyond this sum go back to the system.
  explicit buffer_pool(size_t bytes_kept_max);

  /// Uninitialised memory. The block returns to the pool when the last owner lets go; blocks may
  /// outlive the pool.
  /// Errors: throws std::bad_alloc when the system has no more.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(size_t bytes);

  /// Bytes that are free and kept for reuse.
  [[nodiscard]] size_t bytes_kept() const;

  /// Bytes that are handed out.
  [[nodiscard]] size_t bytes_in_use() const;

  /// Most bytes that were in use at one time since the pool was made.
  [[nodiscard]] size_t bytes_in_use_max() const;

  /// Returns every kept block to the system.
  void trim();

  struct state; ///< Shared with the blocks, which may outlive the pool.

private:
  std::shared_ptr<state> state_;
};

/// The pool that tensors on the CPU come from.
[[nodiscard]] buffer_pool& cpu_pool();

} // namespace troupe
