// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime in the process's own memory: devices, streams, events, copies and graphs.
#include "messages/errors/assert.hpp"
#include "tests/kernels/emulated_cuda/device_arena.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <set>
#include <thread>
#include <vector>

using work = std::function<void()>;

struct CUstream_st {
  int device = 0;
  std::deque<work> queued;
  size_t calls = 0;      ///< Host functions among them.
  bool is_asked = false; ///< A caller looked whether it is done.
  bool is_capturing = false;
  bool capture_is_broken = false;
  std::vector<work> captured;
};

struct CUevent_st {
  int device = 0;
  CUstream_st* recorded_on = nullptr;
  uint64_t recorded = 0; ///< How often; a wait is for the last time before it.
  /// The last time that its stream has come to; outlives the event, since streams may wait for it.
  std::shared_ptr<uint64_t> passed = std::make_shared<uint64_t>(0);
  std::chrono::steady_clock::time_point time;
};

struct CUgraph_st {
  std::vector<work> works;
};

struct CUgraphExec_st {
  std::vector<work> works;
};

namespace troupe::emulated {

namespace {

std::recursive_mutex mutex;
int device_count = 2;
cudaError_t broken = cudaSuccess;
cudaError_t last_error = cudaSuccess;
size_t kernel_count = 0;
size_t wait_count = 0;
size_t pageable_copy_count = 0;
bool refuses_graphs = false;
size_t launch_count = 0;
size_t misplaced_count = 0;
uint64_t bytes_up = 0;
uint64_t bytes_down = 0;
size_t pinned_limit = std::numeric_limits<size_t>::max();
size_t pinned_taken = 0;
std::set<std::pair<const std::byte*, size_t>> pinned;
std::map<const void*, int> homes; // of blocks
std::set<std::pair<int, int>> peers;
size_t peers_max = std::numeric_limits<size_t>::max();
constexpr size_t pitch_max = 0x7fffffff; // of all GPUs so far (`cudaDeviceProp::memPitch`)
std::set<CUstream_st*> streams;
thread_local int current_device = 0;
thread_local bool is_in_host_function = false;

/// A call of the runtime. CUDA forbids those that a host function makes.
struct runtime_call {
  runtime_call() { TROUPE_ASSERT(!is_in_host_function); }

  std::lock_guard<std::recursive_mutex> lock{mutex};
};

device_arena& arena() {
  static auto& all = *new device_arena; // contexts in static objects may outlive it otherwise
  return all;
}

cudaError_t result(cudaError_t code) {
  if (broken != cudaSuccess) code = broken;
  if (code != cudaSuccess) last_error = code;
  return code;
}

void note_place(int device) {
  if (device != current_device) ++misplaced_count;
}

bool is_pinned(const void* at) {
  const auto* byte = static_cast<const std::byte*>(at);
  return std::ranges::any_of(pinned, [&](const auto& block) {
    return byte >= block.first && byte < block.first + block.second;
  });
}

/// Does the next piece of a stream's work, the device's memory being open meanwhile.
void step(CUstream_st& stream) {
  auto next = std::move(stream.queued.front());
  stream.queued.pop_front();
  auto open = arena().open();
  next();
}

void finish(CUstream_st& stream) {
  auto open = arena().open();
  while (!stream.queued.empty())
    step(stream);
}

/// Does what lies before an event, as it is recorded now; to be called later, too.
work wait_for(const CUevent_st& event) {
  return [passed = event.passed, turn = event.recorded, stream = event.recorded_on] {
    while (*passed < turn) {
      TROUPE_ASSERT(!stream->queued.empty());
      step(*stream);
    }
  };
}

/// The driver's own thread: does what lies before the host functions of streams, and calls them;
/// and all that is queued where a caller looks whether it is done.
class driver {
public:
  // Tests fork: a child must not find locked what the driver's thread has locked, which it has not.
  driver() {
    ::pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                     [] {
                       std::construct_at(&mutex);
                       std::construct_at(&get().woken_); // has a mutex of its own
                     });
  }

  void wake_for(CUstream_st* stream) {
    waiting_.push_back(stream);
    if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
    woken_.notify_one();
  }

  void forget(CUstream_st* stream) { std::erase(waiting_, stream); }

  static driver& get() {
    static auto& one = *new driver; // its thread waits until the process ends
    return one;
  }

private:
  [[noreturn]] void run() {
    std::unique_lock lock{mutex};
    for (;;) {
      woken_.wait(lock, [this] { return !waiting_.empty(); });
      auto& stream = *waiting_.front();
      waiting_.pop_front();
      while (stream.calls > 0 || (stream.is_asked && !stream.queued.empty()))
        step(stream);
      stream.is_asked = false;
    }
  }

  std::deque<CUstream_st*> waiting_;
  std::condition_variable_any woken_;
  std::thread thread_;
};

/// Whether a stream has come past a piece of work. It goes on by itself, a moment later.
cudaError_t ask(CUstream_st& stream, bool is_done) {
  if (is_done) return result(cudaSuccess);
  stream.is_asked = true;
  driver::get().wake_for(&stream);
  return result(cudaErrorNotReady);
}

/// CUDA takes no block back before the streams of its device, or of all, are done.
void finish_before_free(std::optional<int> home = std::nullopt) {
  for (auto* stream : streams)
    if (stream->device == home.value_or(stream->device)) finish(*stream);
}

/// Breaks a capture at work that no graph can hold: a wait, or a copy from memory that may be gone
/// when the graph is launched. @returns Whether the stream captures.
bool breaks_capture(CUstream_st& stream) {
  stream.capture_is_broken |= stream.is_capturing;
  return stream.is_capturing;
}

} // namespace

void set_device_count(int count) {
  device_count = count;
}

void set_memory_bytes(size_t bytes) {
  arena().set_limit(bytes);
}

void break_device(cudaError_t code) {
  broken = code;
  last_error = cudaSuccess;
}

size_t kernels_run() {
  return kernel_count;
}

size_t waits() {
  std::lock_guard lock{mutex};
  return wait_count;
}

void refuse_graphs(bool refused) {
  std::lock_guard lock{mutex};
  refuses_graphs = refused;
}

size_t graphs_launched() {
  std::lock_guard lock{mutex};
  return launch_count;
}

size_t misplaced_calls() {
  std::lock_guard lock{mutex};
  return misplaced_count;
}

void set_pinned_bytes(size_t bytes) {
  std::lock_guard lock{mutex};
  pinned_limit = bytes;
}

size_t pinned_bytes() {
  std::lock_guard lock{mutex};
  return pinned_taken;
}

size_t pageable_copies() {
  std::lock_guard lock{mutex};
  return pageable_copy_count;
}

std::set<std::pair<int, int>> readers_of_peers() {
  std::lock_guard lock{mutex};
  return peers;
}

void set_peers_max(size_t pairs) {
  std::lock_guard lock{mutex};
  peers_max = pairs;
}

uint64_t bytes_to_device() {
  std::lock_guard lock{mutex};
  return bytes_up;
}

uint64_t bytes_to_host() {
  std::lock_guard lock{mutex};
  return bytes_down;
}

size_t device_bytes() {
  return arena().taken_bytes();
}

cudaError_t queue(cudaStream_t stream, work piece) {
  const runtime_call entered;
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (broken != cudaSuccess) return result(broken);
  note_place(stream->device);
  if (stream->is_capturing)
    stream->captured.push_back(std::move(piece));
  else
    stream->queued.push_back(std::move(piece));
  return result(cudaSuccess);
}

cudaError_t queue_kernel(cudaStream_t stream, unsigned blocks, unsigned threads, work body) {
  if (blocks == 0 || threads == 0 || threads > 1024) return result(cudaErrorInvalidValue);
  return queue(stream, [=, body = std::move(body)] {
    ++kernel_count;
    run_grid(blocks, threads, body);
  });
}

} // namespace troupe::emulated

using namespace troupe::emulated;

// -- errors and devices ---------------------------------------------------------------------------

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  case cudaErrorInvalidDevice:
    return "cudaErrorInvalidDevice";
  case cudaErrorIllegalAddress:
    return "cudaErrorIllegalAddress";
  case cudaErrorStreamCaptureUnsupported:
    return "cudaErrorStreamCaptureUnsupported";
  case cudaErrorStreamCaptureInvalidated:
    return "cudaErrorStreamCaptureInvalidated";
  default:
    return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t) {
  return "emulated";
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return result(device_count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return result(device < device_count && peer < device_count ? cudaSuccess
                                                             : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const runtime_call entered;
  if (peers.contains({current_device, peer})) return result(cudaErrorPeerAccessAlreadyEnabled);
  if (peers.size() >= peers_max) return result(cudaErrorTooManyPeers);
  peers.emplace(current_device, peer);
  return result(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return result(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  if (device < 0 || device >= device_count) return result(cudaErrorInvalidDevice);
  *found = {"emulated"};
  return result(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const runtime_call entered;
  if (device < 0 || device >= device_count) return result(cudaErrorInvalidDevice);
  current_device = device;
  return result(cudaSuccess);
}

// -- memory ---------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** block, size_t bytes) {
  const runtime_call entered;
  if (broken != cudaSuccess) return result(broken);
  *block = arena().allocate(bytes);
  if (*block != nullptr) homes[*block] = current_device;
  return result(*block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* block) {
  const runtime_call entered;
  if (block == nullptr) return result(cudaSuccess);
  auto home = homes.extract(block).mapped();
  note_place(home);
  finish_before_free(home);
  arena().free(static_cast<std::byte*>(block));
  return result(cudaSuccess);
}

cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  const runtime_call entered;
  if (broken != cudaSuccess) return result(broken);
  if (bytes > pinned_limit || pinned_taken > pinned_limit - bytes)
    return result(cudaErrorMemoryAllocation);
  auto* made = new std::byte[bytes];
  pinned.emplace(made, bytes);
  pinned_taken += bytes;
  *block = made;
  return result(cudaSuccess);
}

cudaError_t cudaFreeHost(void* block) {
  const runtime_call entered;
  auto found = std::ranges::find_if(pinned, [&](const auto& one) { return one.first == block; });
  if (found == pinned.end()) return result(cudaErrorInvalidValue);
  finish_before_free();
  pinned_taken -= found->second;
  pinned.erase(found);
  delete[] static_cast<std::byte*>(block);
  return result(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const runtime_call entered;
  *total_bytes = arena().limit();
  *free_bytes = arena().limit() - arena().taken_bytes();
  return result(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* at) {
  const runtime_call entered;
  found->type = is_pinned(at)       ? cudaMemoryTypeHost
                : arena().holds(at) ? cudaMemoryTypeDevice
                                    : cudaMemoryTypeUnregistered;
  return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const runtime_call entered;
  if (arena().holds(to) && !arena().holds(from)) bytes_up += bytes;
  if (arena().holds(from) && !arena().holds(to)) bytes_down += bytes;
  auto is_pageable = [](const void* at) { return !arena().holds(at) && !is_pinned(at); };
  if (is_pageable(from)) {
    if (breaks_capture(*stream)) return result(cudaErrorStreamCaptureUnsupported);
    ++pageable_copy_count;
    const auto* first = static_cast<const std::byte*>(from);
    return queue(stream, [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  }
  auto queued = queue(stream, [=] { std::memmove(to, from, bytes); });
  if (queued == cudaSuccess && is_pageable(to)) return cudaStreamSynchronize(stream);
  return queued;
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (to_pitch < width || from_pitch < width) return result(cudaErrorInvalidValue);
  if (std::max(to_pitch, from_pitch) > pitch_max) return result(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row) {
    auto* to_row = static_cast<std::byte*>(to) + row * to_pitch;
    const auto* from_row = static_cast<const std::byte*>(from) + row * from_pitch;
    if (auto copied = cudaMemcpyAsync(to_row, from_row, width, kind, stream); copied != cudaSuccess)
      return copied;
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return queue(stream, [=] { std::memset(to, value, bytes); });
}

// -- streams --------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const runtime_call entered;
  *stream = new CUstream_st{.device = current_device};
  streams.insert(*stream);
  return result(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const runtime_call entered;
  note_place(stream->device);
  finish(*stream);
  driver::get().forget(stream);
  streams.erase(stream);
  delete stream;
  return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const runtime_call entered;
  note_place(stream->device);
  if (breaks_capture(*stream)) return result(cudaErrorStreamCaptureUnsupported);
  ++wait_count;
  finish(*stream);
  return result(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const runtime_call entered;
  note_place(stream->device);
  return ask(*stream, stream->queued.empty());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const runtime_call entered;
  return queue(stream, wait_for(*event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*call)(void*), void* argument) {
  const runtime_call entered;
  if (breaks_capture(*stream)) return result(cudaErrorStreamCaptureUnsupported); // none of ours is
  auto queued = queue(stream, [=] {
    --stream->calls;
    if (broken != cudaSuccess) return;
    auto closed = arena().close();
    is_in_host_function = true;
    call(argument);
    is_in_host_function = false;
  });
  if (queued != cudaSuccess) return queued;
  ++stream->calls;
  driver::get().wake_for(stream);
  return queued;
}

// -- events ---------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{.device = current_device};
  return result(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const runtime_call entered;
  note_place(event->device);
  wait_for (*event)();
  delete event;
  return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const runtime_call entered;
  if (event->device != stream->device) return result(cudaErrorInvalidResourceHandle);
  event->recorded_on = stream;
  return queue(stream, [event, turn = ++event->recorded] {
    *event->passed = std::max(*event->passed, turn);
    event->time = std::chrono::steady_clock::now();
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const runtime_call entered;
  note_place(event->device);
  if (*event->passed == event->recorded) return result(cudaSuccess);
  return ask(*event->recorded_on, false);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const runtime_call entered;
  note_place(event->device);
  wait_for (*event)();
  return result(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return result(cudaSuccess);
}

// -- graphs ---------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const runtime_call entered;
  note_place(stream->device);
  stream->is_capturing = true;
  return result(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const runtime_call entered;
  note_place(stream->device);
  stream->is_capturing = false;
  auto works = std::exchange(stream->captured, {});
  if (std::exchange(stream->capture_is_broken, false))
    return result(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(works)};
  return result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return result(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  if (refuses_graphs) return result(cudaErrorMemoryAllocation);
  *ready = new CUgraphExec_st{graph->works};
  return result(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return result(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  const runtime_call entered;
  ++launch_count;
  for (const auto& piece : ready->works)
    if (auto queued = queue(stream, piece); queued != cudaSuccess) return queued;
  return result(cudaSuccess);
}
