// SPDX-License-Identifier: Apache-2.0
// Streams and events of the CUDA runtime, owned.
#include "kernels/cuda/stream.hpp"

#include "kernels/cuda/check.cuh"

#include <utility>

namespace troupe::cuda {

namespace {

/// Whether the work that a query is about is done.
expected<bool> is_done(cudaError_t code, const char* expression, int line) {
  if (code == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError()); // CUDA keeps it, as if it were a failure
    return false;
  }
  if (auto checked = detail::check(code, expression, __FILE__, line); !checked)
    return tl::unexpected(checked.error());
  return true;
}

} // namespace

// -- event ----------------------------------------------------------------------------------------

void event::destroy::operator()(CUevent_st* handle) const {
  static_cast<void>(cudaSetDevice(device_index));
  static_cast<void>(cudaEventDestroy(handle));
}

expected<event> event::create(int device_index, bool timed) {
  if (auto used = detail::use(device_index); !used) return tl::unexpected(used.error());
  cudaEvent_t handle = nullptr;
  TROUPE_TRY_CUDA(
    cudaEventCreateWithFlags(&handle, timed ? cudaEventDefault : cudaEventDisableTiming));
  return event{handle, device_index};
}

expected<bool> event::has_passed() const {
  if (auto used = detail::use(device_index()); !used) return tl::unexpected(used.error());
  return is_done(cudaEventQuery(handle()), "cudaEventQuery", __LINE__);
}

expected<void> event::synchronise() const {
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaEventSynchronize(handle()));
}

expected<std::chrono::duration<float>> event::elapsed_since(const event& earlier) const {
  if (auto used = detail::use(device_index()); !used) return tl::unexpected(used.error());
  float milliseconds = 0;
  TROUPE_TRY_CUDA(cudaEventElapsedTime(&milliseconds, earlier.handle(), handle()));
  return std::chrono::duration<float, std::milli>(milliseconds);
}

// -- stream ---------------------------------------------------------------------------------------

void stream::destroy::operator()(CUstream_st* handle) const {
  static_cast<void>(cudaSetDevice(device_index));
  static_cast<void>(cudaStreamDestroy(handle));
}

expected<stream> stream::create(int device_index) {
  if (auto used = detail::use(device_index); !used) return tl::unexpected(used.error());
  cudaStream_t handle = nullptr;
  TROUPE_TRY_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
  return stream{handle, device_index};
}

expected<void> stream::synchronise() const {
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaStreamSynchronize(handle()));
}

expected<bool> stream::is_idle() const {
  if (auto used = detail::use(device_index()); !used) return tl::unexpected(used.error());
  return is_done(cudaStreamQuery(handle()), "cudaStreamQuery", __LINE__);
}

expected<void> stream::record(const event& mark) const {
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaEventRecord(mark.handle(), handle()));
}

expected<void> stream::wait_for(const event& mark) const {
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaStreamWaitEvent(handle(), mark.handle(), 0));
}

expected<void> stream::copy(const void* from, void* to, size_t size) const {
  if (size == 0) return {};
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, handle()));
}

expected<void> stream::clear(void* to, size_t size) const {
  if (size == 0) return {};
  if (auto used = detail::use(device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaMemsetAsync(to, 0, size, handle()));
}

expected<void> stream::call(std::function<void()> function) const {
  if (auto used = detail::use(device_index()); !used) return used;
  auto kept = std::make_unique<std::function<void()>>(std::move(function));
  auto run = [](void* given) {
    std::unique_ptr<std::function<void()>> owned{static_cast<std::function<void()>*>(given)};
    (*owned)();
  };
  TROUPE_TRY_CUDA(cudaLaunchHostFunc(handle(), run, kept.get()));
  static_cast<void>(kept.release()); // now the stream's
  return {};
}

} // namespace troupe::cuda
