// SPDX-License-Identifier: Apache-2.0
// Goal: NCCL joins, reduces and lets go as `collective_library` says. Method: a group of one rank
// on the first GPU, and one of two in which the second rank never comes.
#include "actors/gpu/cuda_device.hpp"
#include "actors/gpu/nccl_collectives.hpp"
#include "tests/doctest.hpp"

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

template <class T>
T good(expected<T> result) {
  REQUIRE_MESSAGE(result, (result ? std::string{} : result.error().message));
  return std::move(*result);
}

/// A GPU that has joined a group.
struct joined_gpu {
  explicit joined_gpu(uint32_t size) {
    auto id = good(library->make_id());
    participant = good(library->join(id, 0, size, *device));
  }

  bool becomes_ready(std::chrono::seconds timeout) const {
    auto until = std::chrono::steady_clock::now() + timeout;
    while (!good(participant->is_ready())) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  tensor ask(collective_kind kind, const tensor& value) const {
    auto& stream = device->stream(0);
    auto input = good(stream.to_device(value));
    auto output = good(stream.make(value.type(), value.extents()));
    const device_collective what[] = {{kind, input, output}};
    REQUIRE(participant->ask(what, stream));
    REQUIRE(settle(*participant, 60s));
    auto result = good(stream.to_host(output));
    finish();
    return result;
  }

  /// Waits until the stream has done what it was asked.
  void finish() const {
    std::promise<void> done;
    REQUIRE(device->notify(0, [&] { done.set_value(); }));
    REQUIRE(done.get_future().wait_for(60s) == std::future_status::ready);
  }

  std::shared_ptr<collective_library> library = good(open_nccl());
  std::shared_ptr<compute_device> device = good(open_cuda_device(0, 1));
  std::unique_ptr<collective_participant> participant;
};

} // namespace

TEST_SUITE("actors/gpu/nccl_collectives") {
  TEST_CASE("a group of one reduces to what it was given, of every kind") {
    joined_gpu gpu{1};
    REQUIRE(gpu.becomes_ready(60s));
    auto value = make_tensor({4}, {1, -2, 3.5, 4});
    using enum collective_kind;
    for (auto kind : {all_reduce, all_gather, reduce_scatter, broadcast}) {
      auto result = gpu.ask(kind, value);
      for (size_t i = 0; i < 4; ++i)
        CHECK(result.values<float>()[i] == value.values<float>()[i]);
    }
  }

  TEST_CASE("collectives that are asked for together are made as one group") {
    joined_gpu gpu{1};
    REQUIRE(gpu.becomes_ready(60s));
    auto& stream = gpu.device->stream(0);
    std::vector<device_collective> what;
    for (auto kind : {collective_kind::all_reduce, collective_kind::broadcast,
                      collective_kind::all_gather, collective_kind::reduce_scatter}) {
      auto input
        = good(stream.to_device(make_tensor({2}, {1.5F, static_cast<float>(what.size())})));
      what.push_back({kind, input, good(stream.make(dtype::f32, {2}))});
    }
    REQUIRE(gpu.participant->ask(what, stream));
    REQUIRE(settle(*gpu.participant, 60s));
    for (size_t i = 0; i < what.size(); ++i) {
      auto result = good(stream.to_host(what[i].output));
      gpu.finish();
      CHECK(result.values<float>()[0] == 1.5F);
      CHECK(result.values<float>()[1] == static_cast<float>(i));
    }
  }

  TEST_CASE("a group that was given up asks its GPU for nothing, and another one can be made") {
    {
      joined_gpu gpu{1};
      REQUIRE(gpu.becomes_ready(60s));
      gpu.participant->abort();
      gpu.participant->abort(); // once more changes nothing
      CHECK(gpu.participant->is_ready().error().code == errc::unavailable);
      gpu.finish();
    }
    joined_gpu again{1};
    REQUIRE(again.becomes_ready(60s));
    CHECK(again.ask(collective_kind::all_reduce, make_tensor({1}, {3})).values<float>()[0] == 3);
  }

  TEST_CASE("a group whose other rank does not come is not ready, and can be given up") {
    joined_gpu gpu{2};
    CHECK_FALSE(gpu.becomes_ready(1s));
    gpu.participant->abort();
    CHECK(gpu.participant->is_ready().error().code == errc::unavailable);
    CHECK(gpu.participant->ask({}, gpu.device->stream(0)).error().code == errc::unavailable);
    CHECK(!gpu.device->loss());
  }

  TEST_CASE("groups have ids of their own") {
    auto library = good(open_nccl());
    auto id = good(library->make_id());
    auto other = good(library->make_id());
    CHECK(id != other);
  }
}
