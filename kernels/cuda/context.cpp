// SPDX-License-Identifier: Apache-2.0
// Contexts, and copies of tensors between host and device.
#include "kernels/cuda/context.hpp"

#include "kernels/cuda/blas.cuh"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/memory.hpp"

#include <limits>
#include <new>
#include <string>
#include <utility>

namespace troupe::cuda {

namespace {

/// Nothing that a step uses is given back between steps.
constexpr size_t everything = std::numeric_limits<size_t>::max();

/// cuBLAS wants 32 MiB on Hopper. With a workspace of ours its results do not depend on what else
/// the process computes, and it can be captured in a graph.
constexpr size_t blas_workspace_bytes = size_t{32} << 20;

} // namespace

struct context::state {
  explicit state(cuda::stream of)
    : stream(std::move(of)), memory(everything, device_memory(stream.device_index())),
      host_memory(everything, pinned_memory(stream.device_index())) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() {
    static_cast<void>(stream.synchronise()); // what is queued uses the memory
    if (blas != nullptr) static_cast<void>(cuda::blas()->destroy(blas));
  }

  expected<void> make_blas() {
    const auto& library = cuda::blas();
    if (!library) return tl::unexpected(library.error());
    TROUPE_TRY_CUDA(library->create(&blas));
    blas_workspace = memory.allocate(blas_workspace_bytes);
    TROUPE_TRY_CUDA(library->set_stream(blas, stream.handle()));
    TROUPE_TRY_CUDA(library->set_workspace(blas, blas_workspace.get(), blas_workspace_bytes));
    return {};
  }

  cuda::stream stream;
  buffer_pool memory;
  buffer_pool host_memory;
  expected<void> first_failure;
  bool keeps_memory = false;
  std::vector<std::shared_ptr<std::byte>> kept;
  cublasHandle_t blas = nullptr;
  std::shared_ptr<std::byte> blas_workspace;
};

expected<context> context::create(int device_index) {
  auto stream = cuda::stream::create(device_index);
  if (!stream) return tl::unexpected(std::move(stream).error());
  return context{std::make_shared<state>(std::move(*stream))};
}

troupe::device context::device() const {
  return {device_kind::cuda, state_->stream.device_index()};
}

const cuda::stream& context::stream() const {
  return state_->stream;
}

buffer_pool& context::memory() const {
  return state_->memory;
}

buffer_pool& context::host_memory() const {
  return state_->host_memory;
}

tensor context::make(dtype type, shape extents) const {
  auto block = workspace(static_cast<size_t>(extents.element_count()) * element_bytes(type));
  if (block == nullptr) return tensor::wrap_on(device(), nullptr, type, shape{0}, nullptr);
  auto* data = block.get();
  return tensor::wrap_on(device(), data, type, std::move(extents), std::move(block));
}

std::shared_ptr<std::byte> context::workspace(size_t bytes) const {
  if (!status()) return nullptr;
  try {
    auto block = state_->memory.allocate(bytes);
    if (state_->keeps_memory) state_->kept.push_back(block);
    return block;
  } catch (const std::bad_alloc&) {
    note(fail(errc::resource, "cuda:" + std::to_string(device().index) + " has no "
                                + std::to_string(bytes)
                                + " bytes more: " + std::to_string(state_->memory.bytes_in_use())
                                + " are in use here; use smaller batches or another device"));
    return nullptr;
  }
}

void context::keep_memory() const {
  state_->keeps_memory = true;
}

std::vector<std::shared_ptr<std::byte>> context::kept_memory() const {
  state_->keeps_memory = false;
  return std::exchange(state_->kept, {});
}

bool context::note(const expected<void>& done) const {
  if (!done && state_->first_failure) state_->first_failure = done;
  return state_->first_failure.has_value();
}

expected<void> context::status() const {
  return state_->first_failure;
}

expected<void> context::synchronise() const {
  note(state_->stream.synchronise());
  return status();
}

cublasContext* context::blas() const {
  if (!status()) return nullptr;
  if (!note(detail::use(device().index))) return nullptr; // cuBLAS works on the thread's device
  if (state_->blas == nullptr) {
    try {
      note(state_->make_blas());
    } catch (const std::bad_alloc&) {
      note(fail(errc::resource,
                "cuda:" + std::to_string(device().index) + " has no memory for cuBLAS"));
    }
  }
  return status() ? state_->blas : nullptr;
}

expected<tensor> to_device(const context& on, const tensor& from) {
  auto source = from.contiguous();
  auto result = on.make(from.type(), from.extents());
  if (on.status()) on.note(on.stream().copy(source.data(), result.mutable_data(), source.bytes()));
  if (auto so_far = on.status(); !so_far) return tl::unexpected(std::move(so_far).error());
  return result;
}

expected<tensor> to_host(const context& on, const tensor& from) {
  TROUPE_ASSERT(from.is_contiguous(), to_string(from.extents()));
  if (auto so_far = on.status(); !so_far) return tl::unexpected(std::move(so_far).error());
  std::shared_ptr<std::byte> block;
  try {
    block = on.host_memory().allocate(from.bytes());
  } catch (const std::bad_alloc&) {
    return fail(errc::resource, "no " + std::to_string(from.bytes())
                                  + " bytes of pinned memory of the host are left");
  }
  on.note(on.stream().copy(from.data(), block.get(), from.bytes()));
  if (auto copied = on.synchronise(); !copied) return tl::unexpected(std::move(copied).error());
  auto* data = block.get();
  return tensor::wrap(data, from.type(), from.extents(), std::move(block));
}

} // namespace troupe::cuda
