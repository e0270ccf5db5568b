// SPDX-License-Identifier: Apache-2.0
// Goal: the emulator shows the mistakes that it is there for. Method: make each of them; what ends
// a process, in a child.
#include "kernels/cuda/context.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/reduce.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

namespace {

/// The signal that ends a child which does this; 0 if none.
int signal_from(const std::function<void()>& mistake) {
  auto child = ::fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGABRT, SIG_DFL);
    static_cast<void>(std::freopen("/dev/null", "w", stderr));
    mistake();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// Turns an array around in shared memory; right only with the barrier.
template <bool has_barrier>
void reverse_kernel(int* values) {
  TROUPE_SHARED(int, shared, [64]);
  shared[threadIdx.x] = values[threadIdx.x];
  if constexpr (has_barrier) __syncthreads();
  values[threadIdx.x] = shared[63 - threadIdx.x];
}

void half_waits_kernel() {
  if (threadIdx.x < 16) __syncthreads();
}

void launch(void (*kernel)(int*), int* values) {
  void* arguments[] = {&values};
  REQUIRE(cudaLaunchKernel(kernel, dim3(1), dim3(64), arguments, 0, gpu().stream().handle())
          == cudaSuccess);
}

bool reverses(void (*kernel)(int*)) {
  guarded<int> values{64};
  for (int i = 0; i < 64; ++i)
    values[static_cast<size_t>(i)] = i;
  device_array<int> far{values};
  launch(kernel, far.span().data());
  std::ranges::reverse(values.span());
  return holds_bits(far, values);
}

} // namespace

TEST_SUITE("kernels/emulated_cuda") {
  TEST_CASE("a barrier holds all threads, and without one the order of the threads shows") {
    for (uint64_t seed = 1; seed < 9; ++seed) {
      emulated::set_thread_order(seed);
      CHECK(reverses(reverse_kernel<true>));
      CHECK(!reverses(reverse_kernel<false>));
    }
  }

  TEST_CASE("a barrier that some threads never reach ends the process") {
    auto wait = [] {
      void* nothing = nullptr;
      static_cast<void>(cudaLaunchKernel(half_waits_kernel, dim3(1), dim3(32), &nothing, 0,
                                         gpu().stream().handle()));
      static_cast<void>(gpu().synchronise());
    };
    CHECK(signal_from(wait) == SIGABRT);
  }

  TEST_CASE("the host cannot read or write memory of the device") {
    auto values = normal<float>(4, 1);
    device_array<float> far{values};
    CHECK(holds_bits(far, values));
    volatile auto* at = far.span().data();
    CHECK(signal_from([at] { static_cast<void>(*at); }) == SIGSEGV);
    CHECK(signal_from([at] { *at = 1; }) == SIGSEGV);
    CHECK(signal_from([] {}) == 0);
  }

  TEST_CASE("nothing is done before somebody waits") {
    REQUIRE(gpu().synchronise());
    auto before = emulated::kernels_run();
    auto value = gpu().make(dtype::f32, {8});
    cuda::fill<float>(gpu(), value.mutable_values<float>(gpu().device()), 1);
    CHECK(emulated::kernels_run() == before);
    CHECK(cuda::sum(gpu(), elements{value}) == 8);
    CHECK(emulated::kernels_run() > before);
  }

  TEST_CASE("what is written behind a block is found when it is freed") {
    auto overrun = [] {
      void* block = nullptr;
      static_cast<void>(cudaMalloc(&block, 1000));
      static_cast<void>(cudaMemsetAsync(block, 0, 1001, gpu().stream().handle()));
      static_cast<void>(gpu().synchronise());
      static_cast<void>(cudaFree(block));
    };
    CHECK(signal_from(overrun) == SIGABRT);
  }

  TEST_CASE("memory ends at the limit, and kept blocks are given back before it does") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    REQUIRE(on->make(dtype::f32, {1 << 20}).element_count() > 0);
    auto kept = on->memory().bytes_kept();
    CHECK(kept >= size_t{4} << 20);
    emulated::set_memory_bytes(emulated::device_bytes() + 1000);
    CHECK(on->make(dtype::f32, {1 << 19}).element_count() > 0); // in the place of what was kept
    CHECK(on->memory().bytes_kept() < kept);
    CHECK(on->make(dtype::f32, {1 << 22}).element_count() == 0);
    emulated::set_memory_bytes(size_t{1} << 30);
    CHECK(on->synchronise().error().code == errc::resource);
  }

  TEST_CASE("a broken device is told from other failures, and the line says what helps") {
    auto on = cuda::context::create(1);
    REQUIRE(on);
    auto value = on->make(dtype::f32, {8});
    emulated::break_device(cudaErrorIllegalAddress);
    cuda::fill<float>(*on, value.mutable_values<float>(on->device()), 1);
    auto failure = on->synchronise();
    emulated::break_device(cudaSuccess);
    REQUIRE(!failure);
    CHECK(failure.error().code == errc::unavailable);
    CHECK(failure.error().message.find("cudaErrorIllegalAddress") != std::string::npos);
    CHECK(failure.error().message.find("end it and start it again") != std::string::npos);
  }

  TEST_CASE("no device is no error, but none can be used") {
    emulated::set_device_count(0);
    CHECK(cuda::device_count() == 0);
    auto nothing = cuda::context::create(0);
    emulated::set_device_count(2);
    REQUIRE(!nothing);
    CHECK(nothing.error().code == errc::not_found);
  }
}
