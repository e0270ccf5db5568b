// SPDX-License-Identifier: Apache-2.0
// Goal: the emulator shows the mistakes that it is there for. Method: make each of them; what ends
// a process, in a child.
#include "kernels/cuda/context.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/graph.hpp"
#include "kernels/cuda/row_copy.hpp"
#include "kernels/math/clip.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/embedding.hpp"
#include "kernels/math/matmul.hpp"
#include "kernels/math/reduce.hpp"
#include "kernels/tape/cuda_tape.hpp"
#include "kernels/updates/update_pass.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

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
__attribute__((no_sanitize("thread"))) // which would see that
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

  TEST_CASE("nothing is done before the host waits") {
    REQUIRE(gpu().synchronise());
    auto before = emulated::kernels_run();
    auto value = gpu().make(dtype::f32, {8});
    cuda::fill<float>(gpu(), value.mutable_values<float>(gpu().device()), 1);
    CHECK(emulated::kernels_run() == before);
    CHECK(cuda::sum(gpu(), elements{value}) == 8);
    CHECK(emulated::kernels_run() > before);
  }

  TEST_CASE("norms of mean gradients are waited for once, and small ones share a launch") {
    std::vector<variable_state> variables;
    std::vector<gradient> gradients;
    double sum = 0;
    for (int64_t count : {7, 0, 20000, 300, 129}) {
      auto values = normal<float>(static_cast<size_t>(count), 1);
      sum += cpu::squared_norm({}, values.view());
      auto there = cuda::to_device(gpu(), make_tensor({count}, values.view()));
      REQUIRE(there);
      variables.push_back({.value = *there});
      gradients.emplace_back(*there);
    }
    std::vector<measured_mean> means;
    for (size_t i = 0; i < variables.size(); ++i)
      means.push_back({variables[i], {{&gradients[i], 1}}});
    REQUIRE(gpu().synchronise());
    auto waits = emulated::waits(), kernels = emulated::kernels_run();
    auto norms = squared_norms(gpu(), means);
    CHECK(emulated::waits() == waits + 1);
    CHECK(emulated::kernels_run() == kernels + 3); // 20,000 elements take two
    CHECK(std::accumulate(norms.begin(), norms.end(), 0.0) == doctest::Approx(sum));
  }

  TEST_CASE("an update that is clipped by its norm waits for nothing") {
    auto values = normal<float>(300, 1);
    auto there = cuda::to_device(gpu(), make_tensor({300}, values.view()));
    REQUIRE(there);
    variable_state variable{.value = *there};
    const update_plan plan{.rule = rules::adam{}, .clip = {.norm_max = 0.5}};
    const std::vector<gradient> gradients{*there};
    prepare(gpu(), variable, plan);
    auto before = emulated::waits();
    update_variable(gpu(), variable, plan, {gradients});
    CHECK(emulated::waits() == before);
  }

  TEST_CASE("a write behind a block is found when the block is freed") {
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
    CHECK(on->make(dtype::f32, {1 << 28}).element_count() == 0);
    emulated::set_memory_bytes(size_t{1} << 30);
    CHECK(on->synchronise().error().code == errc::resource);
  }

  TEST_CASE("a graph that copies from memory which may be gone is refused") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto there = on->make(dtype::f32, {4});
    const float here[] = {1, 2, 3, 4};
    auto graph = cuda::graph::capture(
      *on, [&] { CHECK(!on->stream().copy(here, there.mutable_data(), sizeof here)); });
    REQUIRE(!graph);
    CHECK(graph.error().message.find("Capture") != std::string::npos);
  }

  TEST_CASE("a host function is called later, when all before it is done") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    std::promise<std::thread::id> called;
    REQUIRE(on->stream().call([&] { called.set_value(std::this_thread::get_id()); }));
    CHECK(called.get_future().get() != std::this_thread::get_id());
  }

  TEST_CASE("a host function that calls CUDA ends the process") {
    auto forbidden = [] {
      auto on = cuda::context::create(0);
      static_cast<void>(on->stream().call([&] { static_cast<void>(on->stream().is_idle()); }));
      static_cast<void>(on->synchronise()); // a child has no thread of the driver's
    };
    CHECK(signal_from(forbidden) == SIGABRT);
  }

  TEST_CASE("a look at a stream does nothing of what is queued, and leaves no failure behind") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = on->make(dtype::f32, {8});
    cuda::fill<float>(*on, value.mutable_values<float>(on->device()), 1);
    auto before = emulated::kernels_run();
    CHECK(on->stream().is_idle() == expected<bool>{false});
    CHECK(cudaGetLastError() == cudaSuccess);
    while (!on->stream().is_idle().value())
      std::this_thread::yield();
    CHECK(emulated::kernels_run() > before);
  }

  TEST_CASE("a stream waits for an event as it was recorded last before, and for no more") {
    auto writer = cuda::context::create(0), reader = cuda::context::create(0);
    REQUIRE(writer);
    REQUIRE(reader);
    auto value = writer->make(dtype::f32, {8});
    auto write = [&](float each, const cuda::event& mark) {
      cuda::fill<float>(*writer, value.mutable_values<float>(writer->device()), each);
      REQUIRE(writer->stream().record(mark));
    };
    {
      auto mark = cuda::event::create(0);
      REQUIRE(mark);
      write(1, *mark);
      REQUIRE(reader->stream().wait_for(*mark));
      write(2, *mark);
      CHECK(cuda::sum(*reader, elements{value}) == 8);
      REQUIRE(reader->stream().wait_for(*mark));
    } // an event may end before the streams that wait for it have come to it
    CHECK(cuda::sum(*reader, elements{value}) == 16);
  }

  TEST_CASE("pinned memory is freed after what is queued, host functions included") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto block = on->host_workspace(100);
    std::atomic<bool> is_called = false;
    REQUIRE(on->stream().call([&] { is_called = true; }));
    block.reset();
    on->host_memory().trim();
    CHECK(is_called);
  }

  TEST_CASE("a context that ends waits for nothing, and what its stream uses is given back later") {
    auto before = emulated::device_bytes();
    auto waits = emulated::waits();
    std::promise<void> called;
    {
      auto on = cuda::context::create(0);
      REQUIRE(on);
      auto value = on->make(dtype::f32, {1 << 20});
      cuda::fill<float>(*on, value.mutable_values<float>(on->device()), 1);
      REQUIRE(on->stream().call([&] { called.set_value(); }));
    }
    CHECK(emulated::waits() == waits);
    called.get_future().wait();
    while (emulated::device_bytes() > before) {
      REQUIRE(cuda::context::create(0));
      std::this_thread::yield();
    }
  }

  TEST_CASE("a graph that ends waits for nothing, and its memory is given back later") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = on->make(dtype::f32, {8});
    auto before = emulated::device_bytes();
    auto forget_one = [&] {
      auto graph = cuda::graph::capture(*on, [&] {
        auto taken = on->make(dtype::f32, {1 << 20});
        cuda::fill<float>(*on, taken.mutable_values<float>(on->device()), 1);
      });
      REQUIRE(graph);
      REQUIRE(graph->launch());
    };
    auto waits = emulated::waits();
    auto kernels = emulated::kernels_run();
    std::promise<void> go_on;
    REQUIRE(on->stream().call([done = go_on.get_future().share()] { done.wait(); }));
    forget_one();
    CHECK(emulated::waits() == waits);
    CHECK(emulated::kernels_run() == kernels);
    CHECK(emulated::device_bytes() >= before + (size_t{4} << 20));
    go_on.set_value();
    REQUIRE(on->synchronise());
    forget_one();
    CHECK(emulated::device_bytes() < before + (size_t{8} << 20));
  }

  TEST_CASE("cuBLAS without memory has the contexts of its device let go of what they keep") {
    auto one = cuda::context::create(0), other = cuda::context::create(0);
    REQUIRE(one);
    REQUIRE(other);
    REQUIRE(other->make(dtype::f32, {10 << 20}).element_count() > 0);
    emulated::set_memory_bytes(emulated::device_bytes() + 1000);
    CHECK(one->blas() != nullptr);
    CHECK(other->memory().bytes_kept() == 0);
    auto filled = other->make(dtype::f32, {1});
    emulated::set_memory_bytes(emulated::device_bytes());
    CHECK(other->blas() == nullptr);
    CHECK(other->status().error().message == "gpu:0 has no memory for cuBLAS");
    emulated::set_memory_bytes(size_t{1} << 30);
    other->forgive();
    CHECK(other->blas() != nullptr);
  }

  TEST_CASE("a context without memory has the others of its device let go of what they keep") {
    auto one = cuda::context::create(0), other = cuda::context::create(0);
    REQUIRE(one);
    REQUIRE(other);
    auto value = cuda::to_device(*other, make_tensor({4}, {1, 2, 3, 4}));
    REQUIRE(value);
    REQUIRE(other->make(dtype::f32, {1 << 20}).element_count() > 0);
    REQUIRE(other->memory().bytes_kept() >= size_t{4} << 20);
    emulated::set_memory_bytes(emulated::device_bytes() + 1000);
    CHECK(one->make(dtype::f32, {1 << 20}).element_count() > 0);
    emulated::set_memory_bytes(size_t{1} << 30);
    CHECK(other->memory().bytes_kept() == 0);
    CHECK(cuda::sum(*other, elements{*value}) == 10);
    CHECK(one->synchronise());
  }

  TEST_CASE("a product has the bits of the reference in all precisions") {
    constexpr size_t rows = 7, columns = 9, inner = 31;
    auto a = normal<float>(rows * inner, 1), b = normal<float>(inner * columns, 2);
    device_array<float> far_a{a}, far_b{b};
    for (auto precision : {product_precision::full, product_precision::tf32,
                           product_precision::bf16, product_precision::f16}) {
      const matmul_form form{
        .rows = rows, .columns = columns, .inner = inner, .precision = precision};
      guarded<float> wanted{rows * columns};
      device_array<float> got{wanted};
      reference::matmul<float>({}, form, a.view(), b.view(), wanted.span());
      cuda::matmul<float>(gpu(), form, far_a.view(), far_b.view(), got.span());
      CHECK(holds_bits(got, wanted));
    }
  }

  TEST_CASE("a tape casts an operand once, for all products that take it") {
    auto first = normal<float>(12, 1), second = normal<float>(20, 2), third = normal<float>(8, 3);
    // (first second)^T first third: each product forward, and back to both of its operands.
    auto kernels = [&](product_precision precision) {
      auto begun = emulated::kernels_run();
      cuda_tape t{{}, gpu(), precision};
      auto enter = [&](guarded<float>& values, shape extents) {
        auto there = cuda::to_device(gpu(), make_tensor(std::move(extents), values.view()));
        REQUIRE(there);
        return t.parameter(*there);
      };
      auto a = enter(first, {3, 4}), b = enter(second, {4, 5}), c = enter(third, {4, 2});
      auto loss = t.mean(t.matmul(t.matmul(a, b), t.matmul(a, c), {.a = true}));
      REQUIRE(t.gradients(loss, {a, b, c}));
      REQUIRE(gpu().synchronise());
      return emulated::kernels_run() - begun;
    };
    auto full = kernels(product_precision::full);
    CHECK(kernels(product_precision::tf32) == full);
    // a, b, c, two of the three results, and the gradients of all three.
    CHECK(kernels(product_precision::bf16) == full + 8);
    CHECK(kernels(product_precision::f16) == full + 8);
  }

  TEST_CASE("a product without memory for its rounded operands fails, and the context says why") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    constexpr size_t side = 64;
    auto values = normal<float>(side * side, 1);
    device_array<float> a{values}, c{values};
    matmul_form form{.rows = side, .columns = side, .inner = side};
    cuda::matmul<float>(*on, form, a.view(), a.view(), c.span()); // cuBLAS has its memory now
    form.precision = product_precision::bf16;
    emulated::set_memory_bytes(0);
    cuda::matmul<float>(*on, form, a.view(), a.view(), c.span());
    emulated::set_memory_bytes(size_t{1} << 30);
    CHECK(on->synchronise().error().code == errc::resource);
  }

  TEST_CASE("without pinned memory numbers do not come back, and the context says why") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, make_tensor({4}, {1, 2, 3, 4}));
    auto indices = cuda::to_device(*on, zeros({4}, dtype::i64));
    REQUIRE(indices);
    emulated::set_pinned_bytes(0);
    auto sum = cuda::sum(*on, elements{*value});
    auto looking = cuda::context::create(0);
    auto found = cuda::find_outside(*looking, indices->values<int64_t>(on->device()), 1);
    emulated::set_pinned_bytes(size_t{1} << 30);
    CHECK(std::isnan(sum));
    CHECK(found == 4);
    for (const auto& failed : {*on, *looking}) {
      CHECK(failed.status().error().code == errc::resource);
      CHECK(failed.status().error().message.find("pinned") != std::string::npos);
    }
  }

  TEST_CASE(
    "values go to the device by way of pinned memory, and a step like the last takes no more") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto pageable = emulated::pageable_copies();
    size_t taken = 0;
    for (float step : {1.F, 2.F, 3.F, 4.F}) {
      auto value = make_tensor({2}, {step, 2 * step});
      auto first = cuda::to_device(*on, value);
      value.mutable_values<float>()[0] = 0; // it has been read
      auto second = cuda::to_device(*on, make_tensor({3}, {step, 0, 1}));
      REQUIRE(first);
      REQUIRE(second);
      CHECK(cuda::sum(*on, elements{*first}) == 3 * step);
      CHECK(cuda::sum(*on, elements{*second}) == step + 1);
      if (step == 3) taken = emulated::pinned_bytes();
    }
    CHECK(emulated::pinned_bytes() == taken);
    CHECK(emulated::pageable_copies() == pageable);
  }

  TEST_CASE("without pinned memory values go to the device all the same") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    emulated::set_pinned_bytes(0);
    auto there = cuda::to_device(*on, make_tensor({2}, {5, 6}));
    emulated::set_pinned_bytes(size_t{1} << 30);
    REQUIRE(there);
    CHECK(cuda::sum(*on, elements{*there}) == 11);
  }

  TEST_CASE("rows that lie farther apart than CUDA's pitches go are copied all the same") {
    constexpr size_t pitch = size_t{1} << 31;
    auto from = cuda::to_device(gpu(), make_tensor({2, 1}, {1, 2}));
    REQUIRE(from);
    auto to = std::make_unique_for_overwrite<std::byte[]>(pitch + sizeof(float));
    REQUIRE(cuda::copy_rows(gpu().stream(), {from->data(), sizeof(float)}, {to.get(), pitch},
                            sizeof(float), 2));
    REQUIRE(gpu().synchronise());
    for (size_t row : {0, 1}) {
      float value = 0;
      std::memcpy(&value, to.get() + row * pitch, sizeof(float));
      CHECK(value == static_cast<float>(row + 1));
    }
  }

  TEST_CASE("every call is made on the device that it concerns") {
    auto before = emulated::misplaced_calls();
    {
      auto first = cuda::context::create(0), second = cuda::context::create(1);
      auto mark = cuda::event::create(1);
      auto there = cuda::to_device(*second, make_tensor({4}, {1, 2, 3, 4}));
      auto elsewhere = [] { static_cast<void>(cudaSetDevice(0)); };
      for (const auto& call : std::vector<std::function<bool()>>{
             [&] { return second->stream().record(*mark).has_value(); },
             [&] { return second->stream().wait_for(*mark).has_value(); },
             [&] { return second->stream().call([] {}).has_value(); },
             [&] { return second->stream().is_idle().has_value(); },
             [&] { return second->stream().synchronise().has_value(); },
             [&] { return mark->has_passed().value(); },
             [&] { return mark->synchronise().has_value(); },
             [&] { return cuda::graph::capture(*second, [] {}).value().launch().has_value(); },
             [&] { return second->synchronise().has_value(); },
           }) {
        elsewhere();
        CHECK(call());
      }
      elsewhere();
      there = tensor{};
      second->memory().trim();
      elsewhere();
    }
    CHECK(emulated::misplaced_calls() == before);
  }

  TEST_CASE("a context of a lost device ends without waiting for it") {
    auto bytes = emulated::device_bytes();
    {
      auto on = cuda::context::create(1);
      REQUIRE(on);
      auto value = on->make(dtype::f32, {8});
      emulated::break_device(cudaErrorIllegalAddress);
      cuda::fill<float>(*on, value.mutable_values<float>(on->device()), 1);
      CHECK(on->status().error().code == errc::unavailable);
    }
    emulated::break_device(cudaSuccess);
    CHECK(emulated::device_bytes() > bytes); // what the device may still write to is kept
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

  TEST_CASE("a broken device is not taken for one without memory") {
    auto starts = [](const std::function<void(const cuda::context&)>& ask) {
      auto on = cuda::context::create(1);
      REQUIRE(on);
      emulated::break_device(cudaErrorIllegalAddress);
      ask(*on);
      emulated::break_device(cudaSuccess);
      return on->status();
    };
    for (const auto& failed :
         {starts([](const auto& on) { CHECK(on.workspace(1000) == nullptr); }),
          starts([](const auto& on) { CHECK(on.host_workspace(1000) == nullptr); })}) {
      REQUIRE(!failed);
      CHECK(failed.error().code == errc::unavailable);
      CHECK(failed.error().message.find("cudaErrorIllegalAddress") != std::string::npos);
    }
  }

  TEST_CASE("a constant that lies on another GPU is refused, and the line names both GPUs") {
    auto other = cuda::context::create(1);
    REQUIRE(other);
    auto elsewhere = cuda::to_device(*other, make_tensor({2}, {1, 2}));
    REQUIRE(elsewhere);
    cuda_tape t{{}, gpu()};
    auto value = t.value(t.mean(t.constant(*elsewhere)));
    REQUIRE(!value);
    CHECK(value.error().message.find("lies on gpu:1, and the tape computes on gpu:0")
          != std::string::npos);
  }

  TEST_CASE("devices that are joined read each other's memory, and are joined but once") {
    for (int index : {0, 1, 0, 1})
      CHECK(cuda::join_peers(index));
    CHECK(emulated::readers_of_peers() == std::set<std::pair<int, int>>{{0, 1}, {1, 0}});
  }

  TEST_CASE("a device that can read no more of the others is used all the same") {
    for (int index : {0, 1})
      CHECK(cuda::join_peers(index));
    auto before = emulated::readers_of_peers();
    emulated::set_device_count(3);
    emulated::set_peers_max(before.size());
    auto joined = cuda::join_peers(2);
    emulated::set_peers_max(std::numeric_limits<size_t>::max());
    emulated::set_device_count(2);
    CHECK_MESSAGE(joined, (joined ? "" : joined.error().message));
    CHECK(emulated::readers_of_peers() == before);
    CHECK(cudaGetLastError() == cudaSuccess);
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
