// SPDX-License-Identifier: Apache-2.0
// The memory of the emulated devices: pages that only the device's work may touch.
#pragma once

#include "messages/errors/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace troupe::emulated {

/// Blocks between canaries, in pages that are closed to all but the holder of a `passage`.
class device_arena {
public:
  device_arena() {
    auto* mapped = ::mmap(nullptr, reserved_bytes + huge_page_bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TROUPE_ASSERT(mapped != MAP_FAILED);
    auto rest = reinterpret_cast<uintptr_t>(mapped) % huge_page_bytes;
    first_ = static_cast<std::byte*>(mapped) + (huge_page_bytes - rest);
    // Opening and closing small pages would be most of what a test takes.
    ::madvise(first_, reserved_bytes, MADV_HUGEPAGE);
  }

  device_arena(const device_arena&) = delete;
  device_arena& operator=(const device_arena&) = delete;

  /// Keeps the pages open or closed while it lives.
  class passage {
  public:
    passage(device_arena& of, bool is_open)
      : of_(of), was_open_(std::exchange(of.is_open_, is_open)) {
      if (was_open_ != is_open) of_.protect();
    }

    passage(const passage&) = delete;
    passage& operator=(const passage&) = delete;

    ~passage() {
      if (std::exchange(of_.is_open_, was_open_) != was_open_) of_.protect();
    }

  private:
    device_arena& of_;
    bool was_open_;
  };

  [[nodiscard]] passage open() { return {*this, true}; }

  [[nodiscard]] passage close() { return {*this, false}; }

  /// Full of NaN, aligned to 256 bytes; null over the limit.
  std::byte* allocate(size_t bytes) {
    size_t whole = (bytes + alignment - 1) / alignment * alignment + canary_bytes;
    if (taken_bytes_ + whole > limit_) return nullptr;
    auto& kept = free_[whole];
    std::byte* block = nullptr;
    if (kept.empty()) {
      if (used_bytes_ + whole > reserved_bytes) return nullptr;
      block = first_ + std::exchange(used_bytes_, used_bytes_ + whole);
      if (is_open_) protect();
    } else {
      block = kept.back();
      kept.pop_back();
    }
    taken_bytes_ += whole;
    blocks_.emplace(block, std::pair{bytes, whole});
    auto entry = open();
    std::memset(block, 0xff, bytes);
    std::memset(block + bytes, canary, whole - bytes);
    return block;
  }

  /// Looks at the canary behind the block.
  void free(std::byte* block) {
    auto found = blocks_.find(block);
    TROUPE_ASSERT(found != blocks_.end());
    auto [bytes, whole] = found->second;
    {
      auto entry = open();
      for (size_t i = bytes; i < whole; ++i)
        TROUPE_ASSERT(std::to_integer<int>(block[i]) == canary, i, bytes); // written behind its end
      std::memset(block, 0xff, bytes);
    }
    blocks_.erase(found);
    taken_bytes_ -= whole;
    free_[whole].push_back(block);
  }

  [[nodiscard]] bool holds(const void* at) const {
    return at >= first_ && at < first_ + reserved_bytes;
  }

  void set_limit(size_t bytes) { limit_ = bytes; }

  [[nodiscard]] size_t limit() const { return limit_; }

  [[nodiscard]] size_t taken_bytes() const { return taken_bytes_; }

private:
  static constexpr size_t reserved_bytes = size_t{64} << 30;
  static constexpr size_t huge_page_bytes = size_t{2} << 20;
  static constexpr size_t alignment = 256;
  static constexpr size_t canary_bytes = 256;
  static constexpr int canary = 0xa5;

  // A part of a huge page would have it split into small ones.
  void protect() {
    auto pages = (used_bytes_ + huge_page_bytes - 1) / huge_page_bytes;
    TROUPE_ASSERT(
      ::mprotect(first_, pages * huge_page_bytes, is_open_ ? PROT_READ | PROT_WRITE : PROT_NONE)
      == 0);
  }

  std::byte* first_ = nullptr;
  size_t used_bytes_ = 0;
  size_t taken_bytes_ = 0;
  size_t limit_ = size_t{1} << 30;
  bool is_open_ = false;
  std::map<std::byte*, std::pair<size_t, size_t>> blocks_; // bytes asked for, and taken
  std::map<size_t, std::vector<std::byte*>> free_;
};

} // namespace troupe::emulated
