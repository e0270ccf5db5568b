// SPDX-License-Identifier: Apache-2.0
// Memory by way of the CUDA runtime.
#include "kernels/cuda/memory.hpp"

#include "kernels/cuda/check.cuh"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

/// Memory of the CUDA runtime, by two of its functions.
template <cudaError_t (*allocate_block)(void**, size_t), cudaError_t (*free_block)(void*),
          bool lies_on_host>
class runtime_source final : public memory_source {
public:
  explicit runtime_source(int device_index) : device_index_(device_index) {}

  std::byte* allocate(size_t bytes) noexcept override {
    void* block = nullptr;
    if (cudaSetDevice(device_index_) != cudaSuccess
        || allocate_block(&block, bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    return static_cast<std::byte*>(block);
  }

  // CUDA waits for all that is queued on the device before it takes a block of its memory back.
  void free(std::byte* block) noexcept override {
    static_cast<void>(cudaSetDevice(device_index_));
    static_cast<void>(free_block(block));
  }

  [[nodiscard]] bool is_of_host() const noexcept override { return lies_on_host; }

private:
  int device_index_;
};

cudaError_t allocate_on_device(void** block, size_t bytes) {
  return cudaMalloc(block, bytes);
}

cudaError_t allocate_pinned(void** block, size_t bytes) {
  return cudaHostAlloc(block, bytes, cudaHostAllocPortable);
}

using device_source = runtime_source<allocate_on_device, cudaFree, false>;
using pinned_source = runtime_source<allocate_pinned, cudaFreeHost, true>;

/// Gives nothing back before its own end.
class lasting_source final : public memory_source {
public:
  explicit lasting_source(int device_index) : device_(device_index) {}

  ~lasting_source() override {
    for (auto* block : handed_out_)
      device_.free(block);
  }

  std::byte* allocate(size_t bytes) noexcept override {
    auto* block = device_.allocate(bytes);
    if (block == nullptr) return nullptr;
    try {
      std::lock_guard lock{mutex_};
      handed_out_.push_back(block);
      return block;
    } catch (const std::bad_alloc&) {
      device_.free(block);
      return nullptr;
    }
  }

  void free(std::byte*) noexcept override {}

  [[nodiscard]] bool is_of_host() const noexcept override { return false; }

private:
  device_source device_;
  std::mutex mutex_;
  std::vector<std::byte*> handed_out_;
};

} // namespace

std::shared_ptr<memory_source> lasting_device_memory(int device_index) {
  return std::make_shared<lasting_source>(device_index);
}

std::shared_ptr<memory_source> device_memory(int device_index) {
  return std::make_shared<device_source>(device_index);
}

std::shared_ptr<memory_source> pinned_memory(int device_index) {
  return std::make_shared<pinned_source>(device_index);
}

bool is_pinned(int device_index, const void* at) {
  if (!detail::use(device_index)) return false;
  cudaPointerAttributes found{};
  if (cudaPointerGetAttributes(&found, at) == cudaSuccess) return found.type == cudaMemoryTypeHost;
  static_cast<void>(cudaGetLastError());
  return false;
}

expected<memory_use> memory_of(int device_index) {
  if (auto used = detail::use(device_index); !used) return tl::unexpected(used.error());
  memory_use found;
  TROUPE_TRY_CUDA(cudaMemGetInfo(&found.free_bytes, &found.total_bytes));
  return found;
}

tl::unexpected<error> no_memory(int device_index, std::string line) {
  if (auto there = memory_of(device_index); !there) return tl::unexpected(there.error());
  return fail(errc::resource, std::move(line));
}

} // namespace troupe::cuda
