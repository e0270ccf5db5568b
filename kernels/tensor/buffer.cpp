// SPDX-License-Identifier: Apache-2.0
// The pool behind tensors: free lists by size class.
#include "kernels/tensor/buffer.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Blocks from here on are aligned to huge pages, and the kernel is asked to use them: 512 times
// fewer page faults for fresh memory, and fewer misses in the address cache afterwards.
constexpr size_t huge_page_bytes = size_t{2} << 20;
constexpr size_t huge_block_bytes = 2 * huge_page_bytes;

// Eight size classes per power of two: a block of one size can serve another that is up to an
// eighth smaller. The surplus of a block is address space; the system backs it only if touched.
size_t class_bytes(size_t bytes) {
  size_t step = std::max(buffer_pool::alignment, std::bit_floor(bytes) / 8);
  if (bytes > SIZE_MAX - huge_page_bytes - step) throw std::bad_alloc{};
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

class system_memory final : public memory_source {
public:
  std::byte* allocate(size_t bytes) noexcept override {
    bool huge = bytes >= huge_block_bytes;
    size_t alignment = huge ? huge_page_bytes : buffer_pool::alignment;
    void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (block == nullptr) return nullptr;
    if (huge) ::madvise(block, bytes, MADV_HUGEPAGE); // a wish: refused, the block is still good
    return static_cast<std::byte*>(block);
  }

  void free(std::byte* block) noexcept override { std::free(block); }

  [[nodiscard]] bool is_of_host() const noexcept override { return true; }
};

size_t quarter_of_physical_memory() {
  auto pages = ::sysconf(_SC_PHYS_PAGES);
  auto page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return size_t{1} << 30;
  return static_cast<size_t>(pages) / 4 * static_cast<size_t>(page_bytes);
}

} // namespace

std::string to_string(device where) {
  return (where.kind == device_kind::cpu ? "cpu:" : "gpu:") + std::to_string(where.index);
}

struct buffer_pool::state {
  state(size_t bytes_kept_max, std::shared_ptr<memory_source> from)
    : kept_max(bytes_kept_max), source(std::move(from)) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() { drop_all(); }

  /// A kept block of this size class, or none; counts it as handed out either way.
  std::byte* take(size_t bytes) {
    std::lock_guard lock{mutex};
    in_use += bytes;
    in_use_max = std::max(in_use_max, in_use);
    auto found = free_blocks.find(bytes);
    if (found == free_blocks.end() || found->second.empty()) return nullptr;
    auto* block = found->second.back();
    found->second.pop_back();
    kept -= bytes;
    return block;
  }

  /// A fresh block; if the source has none, the kept blocks go back to it first. Null if that does
  /// not help.
  std::byte* make(size_t bytes) {
    if (auto* block = source->allocate(bytes)) return block;
    drop_all();
    return source->allocate(bytes);
  }

  /// Undoes the count of `take` when the source has no memory.
  void forget(size_t bytes) {
    std::lock_guard lock{mutex};
    in_use -= bytes;
  }

  /// Keeps the block, or hands it to the source when enough are kept.
  void give_back(std::byte* block, size_t bytes) noexcept {
    if (!keep(block, bytes)) source->free(block);
  }

  bool keep(std::byte* block, size_t bytes) noexcept {
    std::lock_guard lock{mutex};
    TROUPE_ASSERT(in_use >= bytes, in_use, bytes);
    in_use -= bytes;
    if (bytes > kept_max || kept > kept_max - bytes) return false;
    try {
      free_blocks[bytes].push_back(block);
    } catch (const std::bad_alloc&) {
      return false;
    }
    kept += bytes;
    return true;
  }

  /// Frees all kept blocks, without the lock: a GPU's source may wait for a callback that needs it.
  void drop_all() {
    std::map<size_t, std::vector<std::byte*>> dropped;
    {
      std::lock_guard lock{mutex};
      dropped.swap(free_blocks);
      kept = 0;
    }
    for (auto& [bytes, blocks] : dropped)
      for (auto* block : blocks)
        source->free(block);
  }

  const size_t kept_max;
  const std::shared_ptr<memory_source> source;
  mutable std::mutex mutex;
  std::map<size_t, std::vector<std::byte*>> free_blocks; // by size class; the warmest block last
  size_t kept = 0;
  size_t in_use = 0;
  size_t in_use_max = 0;
};

buffer_pool::buffer_pool(size_t bytes_kept_max, std::shared_ptr<memory_source> source)
  : state_(std::make_shared<state>(bytes_kept_max, source ? std::move(source)
                                                          : std::make_shared<system_memory>())) {}

std::shared_ptr<std::byte> buffer_pool::allocate(size_t bytes) {
  size_t capacity = class_bytes(bytes);
  auto* block = state_->take(capacity);
  if (block == nullptr) block = state_->make(capacity);
  if (block == nullptr) {
    state_->forget(capacity);
    throw std::bad_alloc{};
  }
  if (state_->source->is_of_host()) std::memset(block + bytes, 0, (8 - bytes % 8) % 8);
  return {block, [pool = state_, capacity](std::byte* freed) { pool->give_back(freed, capacity); }};
}

size_t buffer_pool::bytes_kept() const {
  std::lock_guard lock{state_->mutex};
  return state_->kept;
}

size_t buffer_pool::bytes_in_use() const {
  std::lock_guard lock{state_->mutex};
  return state_->in_use;
}

size_t buffer_pool::bytes_in_use_max() const {
  std::lock_guard lock{state_->mutex};
  return state_->in_use_max;
}

void buffer_pool::trim() {
  state_->drop_all();
}

buffer_pool& cpu_pool() {
  // Never destroyed: tensors in other static objects may outlive any order of destruction.
  static auto& pool = *new buffer_pool(quarter_of_physical_memory());
  return pool;
}

} // namespace troupe
