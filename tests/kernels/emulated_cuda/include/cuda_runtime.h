// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's header of this name where a plain C++ compiler reads device code: as much of
// the language and of the runtime as Troupe uses, executed by the emulator (emulator.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

// -- the language ---------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
// A shared array; blocks run one after the other, so one copy serves them all, spoilt before each.
#define TROUPE_SHARED(type, name, ...)                                                             \
  static type name __VA_ARGS__;                                                                    \
  static const troupe::emulated::shared_array name##_of_block(&name, sizeof name)
#define __launch_bounds__(...)
#define TROUPE_GRID_BLOCKS_MAX 3
#define TROUPE_NARROW_COUNT_MAX 1000

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;

  dim3(unsigned count = 1) : x(count) {}
};

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace troupe::emulated {

/// Makes a shared array known; NaN until somebody writes to it, in every block.
struct shared_array {
  shared_array(void* first, size_t bytes);
};

/// Returns when all threads of the block have come here.
void block_barrier();

/// Returns when all lanes of the warp have come here, and what they did before is to be seen.
void warp_barrier();

/// Gives `value` to the warp and returns what lane `source` gave; all lanes come here together.
uint64_t exchange(uint64_t value, unsigned source);

/// Runs a kernel's body for every thread of every block.
void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& body);

template <class T>
T shuffle(T value, unsigned source) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = exchange(bits, source);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

} // namespace troupe::emulated

inline void __syncthreads() {
  troupe::emulated::block_barrier();
}

inline void __syncwarp() {
  troupe::emulated::warp_barrier();
}

template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
  unsigned lane = threadIdx.x % 32, end = lane / width * width + width;
  return troupe::emulated::shuffle(value, lane + delta < end ? lane + delta : lane);
}

template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  return troupe::emulated::shuffle(value, threadIdx.x % 32 / width * width + source % width);
}

inline unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
  std::atomic_ref<unsigned long long> number{*at};
  auto before = number.load(std::memory_order_relaxed);
  while (value < before
         && !number.compare_exchange_weak(before, value, std::memory_order_relaxed)) {}
  return before;
}

// -- the runtime ----------------------------------------------------------------------------------

#define CUDART_VERSION 13000

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidPc = 718,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorECCUncorrectable = 214,
  cudaErrorPeerAccessUnsupported = 217,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorAssert = 710,
  cudaErrorTooManyPeers = 711,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;

struct cudaDeviceProp {
  char name[256];
};

enum cudaMemcpyKind { cudaMemcpyDefault = 4 };

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2
};

struct cudaPointerAttributes {
  cudaMemoryType type;
};

enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };

inline constexpr unsigned cudaEventDefault = 0, cudaEventDisableTiming = 2;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocPortable = 1;

const char* cudaGetErrorName(cudaError_t code);
const char* cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);

cudaError_t cudaMalloc(void** block, size_t bytes);
cudaError_t cudaFree(void* block);
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* block);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* at);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*call)(void*), void* argument);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready);
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream);

namespace troupe::emulated {

/// Queues work of the device; refuses grids that no device would take.
cudaError_t queue(cudaStream_t stream, std::function<void()> work);
cudaError_t queue_kernel(cudaStream_t stream, unsigned blocks, unsigned threads,
                         std::function<void()> body);

} // namespace troupe::emulated

template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                             void** arguments, size_t, cudaStream_t stream) {
  // The arguments are copied now, as CUDA does.
  auto values = [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Parameters...>{*static_cast<Parameters*>(arguments[I])...};
  }
  (std::index_sequence_for<Parameters...>{});
  return troupe::emulated::queue_kernel(stream, blocks.x, threads.x,
                                        [kernel, values] { std::apply(kernel, values); });
}
