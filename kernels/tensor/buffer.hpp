// SPDX-License-Identifier: Apache-2.0
// Memory for tensors, recycled instead of returned to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe {

/// Where a tensor's bytes lie.
enum class device_kind : uint8_t { cpu = 0, cuda = 1 };

/// A device: its kind and its index among those of that kind ("cpu:0", "gpu:1").
struct device {
  device_kind kind = device_kind::cpu;
  int index = 0;
  bool operator==(const device&) const = default;
};

/// "cpu:0" or "gpu:1", as people write it.
[[nodiscard]] std::string to_string(device where);

/// Where a pool's blocks come from.
/// Thread: all members may be called from any thread.
class memory_source {
public:
  memory_source() = default;
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;
  virtual ~memory_source() = default;

  /// A block aligned to `buffer_pool::alignment`; null if there is no more.
  [[nodiscard]] virtual std::byte* allocate(size_t bytes) noexcept = 0;

  virtual void free(std::byte* block) noexcept = 0;

  /// Whether the CPU can write to the blocks.
  [[nodiscard]] virtual bool is_of_host() const noexcept = 0;
};

/// A training step allocates and frees the same few sizes over and over; fresh memory costs a page
/// fault per 4 KiB, which halves the bandwidth of large tensors. A pool keeps what was freed.
///
/// Every block is aligned to `alignment` bytes, and in memory of the host the bytes from the
/// requested size up to the next multiple of 8 are zero, so that a message may refer to the block
/// without leaking old contents. Thread: all members may be called from any thread; a block may be
/// freed on another thread.
class buffer_pool {
public:
  static constexpr size_t alignment = 64;

  /// @param bytes_kept_max Freed blocks beyond this sum go back to the source.
  /// @param source Ordinary memory of the host if there is none.
  explicit buffer_pool(size_t bytes_kept_max, std::shared_ptr<memory_source> source = nullptr);

  /// Uninitialised memory. The block returns to the pool when the last owner lets go; blocks may
  /// outlive the pool.
  /// Errors: throws std::bad_alloc when the source has no more, even without the kept blocks.
  [[nodiscard]] std::shared_ptr<std::byte> allocate(size_t bytes);

  /// Bytes that are free and kept for reuse.
  [[nodiscard]] size_t bytes_kept() const;

  /// Bytes that are handed out.
  [[nodiscard]] size_t bytes_in_use() const;

  /// Most bytes that were in use at one time since the pool was made.
  [[nodiscard]] size_t bytes_in_use_max() const;

  /// Returns every kept block to the source.
  void trim();

  struct state; ///< Shared with the blocks, which may outlive the pool.

private:
  std::shared_ptr<state> state_;
};

/// The pool that tensors on the CPU come from.
[[nodiscard]] buffer_pool& cpu_pool();

} // namespace troupe
