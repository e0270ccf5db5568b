// SPDX-License-Identifier: Apache-2.0
// Memory by way of the CUDA runtime.
#include "kernels/cuda/memory.hpp"

#include "kernels/cuda/check.cuh"

namespace troupe::cuda {

namespace {

class device_source final : public memory_source {
public:
  explicit device_source(int device_index) : device_index_(device_index) {}

  std::byte* allocate(size_t bytes) noexcept override {
    void* block = nullptr;
    if (cudaSetDevice(device_index_) != cudaSuccess || cudaMalloc(&block, bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    return static_cast<std::byte*>(block);
  }

  void free(std::byte* block) noexcept override { static_cast<void>(cudaFree(block)); }

  [[nodiscard]] bool is_of_host() const noexcept override { return false; }

private:
  int device_index_;
};

class pinned_source final : public memory_source {
public:
  explicit pinned_source(int device_index) : device_index_(device_index) {}

  std::byte* allocate(size_t bytes) noexcept override {
    void* block = nullptr;
    if (cudaSetDevice(device_index_) != cudaSuccess
        || cudaHostAlloc(&block, bytes, cudaHostAllocPortable) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    return static_cast<std::byte*>(block);
  }

  void free(std::byte* block) noexcept override { static_cast<void>(cudaFreeHost(block)); }

  [[nodiscard]] bool is_of_host() const noexcept override { return true; }

private:
  int device_index_;
};

} // namespace

std::shared_ptr<memory_source> device_memory(int device_index) {
  return std::make_shared<device_source>(device_index);
}

std::shared_ptr<memory_source> pinned_memory(int device_index) {
  return std::make_shared<pinned_source>(device_index);
}

expected<memory_use> memory_of(int device_index) {
  if (auto used = detail::use(device_index); !used) return tl::unexpected(used.error());
  memory_use found;
  TROUPE_TRY_CUDA(cudaMemGetInfo(&found.free_bytes, &found.total_bytes));
  return found;
}

} // namespace troupe::cuda
