// SPDX-License-Identifier: Apache-2.0
// Asking the CUDA runtime for devices, and its errors in our words.
#include "kernels/cuda/device.hpp"

#include "kernels/cuda/check.cuh"

#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace troupe::cuda {

namespace {

// Codes that drivers return, and that headers of CUDA 12 do not all name yet.
constexpr int error_contained = 226;       // cudaErrorContained
constexpr int tensor_memory_leak = 721;    // cudaErrorTensorMemoryLeak
constexpr int mps_client_terminated = 810; // cudaErrorMpsClientTerminated
constexpr int external_device = 911;       // cudaErrorExternalDevice

errc code_of(cudaError_t code) {
  if (detail::is_sticky(code)) return errc::unavailable;
  switch (code) {
  case cudaErrorMemoryAllocation:
  case cudaErrorInsufficientDriver:
    return errc::resource;
  case cudaErrorNoDevice:
  case cudaErrorInvalidDevice:
    return errc::not_found;
  default:
    return errc::failed_precondition;
  }
}

/// Lets one device read the memory of another. Another library may have done so before. A device
/// that can read no more of the others, such as the tenth on one bus, copies by way of the host.
expected<void> let_read(int reader, int other) {
  int is_wired = 0;
  TROUPE_TRY_CUDA(cudaDeviceCanAccessPeer(&is_wired, reader, other));
  if (is_wired == 0) return {};
  if (auto used = detail::use(reader); !used) return used;
  auto code = cudaDeviceEnablePeerAccess(other, 0);
  auto is_settled = code == cudaErrorPeerAccessAlreadyEnabled || code == cudaErrorTooManyPeers
                    || code == cudaErrorPeerAccessUnsupported;
  if (!is_settled) return TROUPE_CHECK_CUDA(code);
  static_cast<void>(cudaGetLastError());
  return {};
}

/// 13020 as people write it.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string place(const char* expression, const char* file, int line) {
  int current = -1;
  static_cast<void>(cudaGetDevice(&current));
  return " from " + std::string(expression) + " on gpu:" + std::to_string(current) + " (" + file
         + ":" + std::to_string(line) + ")";
}

} // namespace

namespace detail {

bool is_sticky(cudaError_t code) {
  switch (static_cast<int>(code)) {
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchTimeout:
  case cudaErrorAssert:
  case cudaErrorHardwareStackError:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorLaunchFailure:
  case error_contained:
  case tensor_memory_leak:
  case mps_client_terminated:
  case external_device:
    return true;
  default:
    return false;
  }
}

expected<void> check(cudaError_t code, const char* expression, const char* file, int line) {
  if (code == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError()); // else a later call would report it once more
  auto text = std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")"
              + place(expression, file, line);
  if (is_sticky(code)) text += "; the device is lost to this process: end it and start it again";
  return fail(code_of(code), std::move(text));
}

expected<void> check(cublasStatus_t code, const char* expression, const char* file, int line) {
  if (code == CUBLAS_STATUS_SUCCESS) return {};
  auto kind = code == CUBLAS_STATUS_ALLOC_FAILED       ? errc::resource
              : code == CUBLAS_STATUS_EXECUTION_FAILED ? errc::unavailable
                                                       : errc::failed_precondition;
  return fail(kind, "cuBLAS status " + std::to_string(static_cast<int>(code))
                      + place(expression, file, line));
}

expected<void> use(int device_index) {
  return TROUPE_CHECK_CUDA(cudaSetDevice(device_index));
}

} // namespace detail

expected<int> device_count() {
  int count = 0;
  auto code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    int driver = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    if (driver != 0)
      return fail(errc::resource, "the GPU's driver is of CUDA " + version(driver)
                                    + ", and Troupe was built with " + version(CUDART_VERSION)
                                    + "; install a newer driver");
    code = cudaErrorNoDevice; // no driver at all
  }
  if (code == cudaErrorNoDevice) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  TROUPE_TRY_CUDA(code);
  return count;
}

expected<std::string> device_name(int device_index) {
  auto count = device_count();
  if (!count) return tl::unexpected(count.error());
  if (device_index < 0 || device_index >= *count)
    return fail(errc::not_found, "there is no gpu:" + std::to_string(device_index)
                                   + ", this process sees " + std::to_string(*count)
                                   + " GPUs (CUDA_VISIBLE_DEVICES may hide some)");
  cudaDeviceProp found{};
  TROUPE_TRY_CUDA(cudaGetDeviceProperties(&found, device_index));
  return std::string{found.name};
}

expected<void> join_peers(int device_index) {
  static std::mutex mutex;
  static std::set<int> joined;
  std::lock_guard guard{mutex};
  if (joined.contains(device_index)) return {};
  for (auto other : joined) {
    if (auto done = let_read(device_index, other); !done) return done;
    if (auto done = let_read(other, device_index); !done) return done;
  }
  joined.insert(device_index);
  return {};
}

} // namespace troupe::cuda
