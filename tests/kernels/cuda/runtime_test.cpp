// SPDX-License-Identifier: Apache-2.0
// Goal: streams, events, graphs and contexts keep their order, and say what failed.
#include "kernels/cuda/array_copies.hpp"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/context.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/graph.hpp"
#include "kernels/cuda/loaded_library.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/row_copy.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"
#include "tests/kernels/cuda/device_arrays.hpp"

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels/cuda/runtime") {
  TEST_CASE("devices have names and memory, and a device that is not there is named") {
    auto count = cuda::device_count();
    REQUIRE(count);
    auto first = cuda::device_name(0);
    REQUIRE(first);
    CHECK(!first->empty());
    CHECK(cuda::memory_of(0)->total_bytes >= cuda::memory_of(0)->free_bytes);
    auto none = cuda::device_name(*count);
    REQUIRE(!none);
    CHECK(none.error().code == errc::not_found);
    CHECK(none.error().message.find("gpu:" + std::to_string(*count)) != std::string::npos);
    auto nowhere = cuda::context::create(*count);
    REQUIRE(!nowhere);
    CHECK(nowhere.error().code == errc::not_found);
  }

  TEST_CASE("a library gives its functions by name, and one that cannot be loaded is named") {
    auto library = cuda::loaded_library::open("the C library", "libc.so.6", "/nowhere");
    REQUIRE(library);
    int (*absolute)(int) = nullptr;
    REQUIRE(library->find("abs", absolute));
    CHECK(absolute(-3) == 3);
    CHECK(!library->find("no_such_function", absolute));
    auto none = cuda::loaded_library::open("Nothing", "libnothing.so.1", "/nowhere");
    REQUIRE(!none);
    CHECK(none.error().code == errc::resource);
    CHECK(none.error().message.starts_with("Nothing cannot be loaded: /nowhere/libnothing.so.1: "));
    CHECK(none.error().message.ends_with("; install it, or add its folder to LD_LIBRARY_PATH"));
  }

  TEST_CASE("tensors go to the device and come back") {
    auto value = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
    auto there = cuda::to_device(gpu(), value.transpose());
    REQUIRE(there);
    CHECK(there->device() == gpu().device());
    CHECK(there->extents() == shape{3, 2});
    auto back = cuda::to_host(gpu(), *there);
    REQUIRE(back);
    CHECK(back->device() == device{});
    CHECK(back->values<float>()[1] == 4);
    auto empty = cuda::to_host(gpu(), *cuda::to_device(gpu(), zeros({0})));
    REQUIRE(empty);
    CHECK(empty->element_count() == 0);
  }

  TEST_CASE("rows are copied into wider ones, and nothing between them is touched") {
    for (size_t rows : {1U, 2U, 5U})
      for (size_t width : {0U, 1U, 7U}) {
        std::vector<float> small(rows * width), large(rows * 9, -1);
        for (size_t i = 0; i < small.size(); ++i)
          small[i] = static_cast<float>(i);
        auto from
          = cuda::to_device(gpu(), make_tensor({static_cast<int64_t>(small.size())}, small));
        auto to = cuda::to_device(gpu(), make_tensor({static_cast<int64_t>(large.size())}, large));
        REQUIRE(from);
        REQUIRE(to);
        auto* second = static_cast<float*>(to->mutable_data()) + 1;
        REQUIRE(cuda::copy_rows(gpu().stream(), {from->data(), width * sizeof(float)},
                                {second, 9 * sizeof(float)}, width * sizeof(float), rows));
        auto back = cuda::to_host(gpu(), *to);
        REQUIRE(back);
        for (size_t i = 0; i < large.size(); ++i) {
          auto column = i % 9;
          auto is_copied = column >= 1 && column <= width;
          auto expected = is_copied ? static_cast<float>(i / 9 * width + column - 1) : -1.F;
          CHECK(back->values<float>()[i] == expected);
        }
      }
  }

  TEST_CASE("many arrays are copied, and nothing behind them is touched") {
    constexpr size_t sizes[] = {0, 1, 3, 4, 5, 8191, 8192, 8196, 20003};
    std::vector<guarded<float>> from;
    std::vector<device_array<float>> sources, results;
    std::vector<cuda::array_copy> copies;
    for (size_t i = 0; i < 70; ++i) { // more than one kernel takes; some do not begin at a packet
      auto size = sizes[i % std::size(sizes)];
      from.push_back(normal<float>(size, i));
      guarded<float> nothing{size};
      sources.emplace_back(from[i], i % 3 == 1 ? 1 : 0);
      results.emplace_back(nothing, i % 4 == 1 ? 1 : 0);
      copies.push_back({sources[i].view().data(), results[i].span().data(), size * sizeof(float)});
    }
    cuda::copy_arrays(gpu(), copies);
    cuda::copy_arrays(gpu(), {});
    for (size_t i = 0; i < from.size(); ++i)
      CHECK(holds_bits(results[i], from[i]));
  }

  TEST_CASE("published work is done before the work of another context that has caught up") {
    auto writer = cuda::context::create(0), reader = cuda::context::create(0);
    REQUIRE(writer);
    REQUIRE(reader);
    auto value = cuda::to_device(*writer, zeros({1000}));
    REQUIRE(value);
    for (float each : {1.F, 2.F}) {
      cuda::fill<float>(*writer, value->mutable_values<float>(writer->device()), each);
      writer->publish();
      reader->catch_up();
      CHECK(cuda::sum(*reader, elements{*value}) == 1000 * static_cast<double>(each));
    }
    CHECK(writer->synchronise());
  }

  TEST_CASE("a pool hands out the memory that was freed, and a step needs no more than the first") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto step = [&] {
      auto a = on->make(dtype::f32, {1000});
      auto b = on->make(dtype::f32, {1000});
      cuda::fill<float>(*on, a.mutable_values<float>(on->device()), 1);
      cuda::copy<float>(*on, a.values<float>(on->device()), b.mutable_values<float>(on->device()));
      return cuda::sum(*on, elements{b});
    };
    CHECK(step() == 1000);
    auto bytes = on->memory().bytes_in_use_max();
    for (int turn = 0; turn < 5; ++turn)
      CHECK(step() == 1000);
    CHECK(on->memory().bytes_in_use_max() == bytes);
    CHECK(on->memory().bytes_in_use() == 0);
    CHECK(on->synchronise());
  }

  TEST_CASE("a stream waits for an event of another one") {
    auto first = cuda::context::create(0), second = cuda::context::create(0);
    REQUIRE(first);
    REQUIRE(second);
    auto event = cuda::event::create(0);
    REQUIRE(event);
    auto value = cuda::to_device(*first, make_tensor({3}, {1, 2, 3}));
    REQUIRE(value);
    auto doubled = first->make(dtype::f32, {3});
    cuda::scale<float>(*first, 2, value->values<float>(first->device()),
                       doubled.mutable_values<float>(first->device()));
    REQUIRE(first->stream().record(*event));
    REQUIRE(second->stream().wait_for(*event));
    CHECK(cuda::sum(*second, elements{doubled}) == 12);
    CHECK(event->has_passed().value());
    CHECK(first->stream().synchronise());
    CHECK(first->stream().is_idle().value());
  }

  TEST_CASE("a queued call comes after what was queued before it") {
    auto value = cuda::to_device(gpu(), make_tensor({1}, {1}));
    REQUIRE(value);
    auto place = gpu().host_memory().allocate(sizeof(float));
    auto* seen = reinterpret_cast<float*>(place.get());
    *seen = 0;
    std::atomic<float> at_call = 0;
    REQUIRE(gpu().stream().copy(value->data(), seen, sizeof(float)));
    REQUIRE(gpu().stream().call([&] { at_call = *seen; }));
    REQUIRE(gpu().synchronise());
    CHECK(at_call == 1);
  }

  TEST_CASE("time passes between timed events") {
    auto begin = cuda::event::create(0, true), end = cuda::event::create(0, true);
    REQUIRE(begin);
    REQUIRE(end);
    REQUIRE(gpu().stream().record(*begin));
    REQUIRE(gpu().stream().record(*end));
    REQUIRE(end->synchronise());
    CHECK(end->elapsed_since(*begin)->count() >= 0);
  }

  TEST_CASE("a graph does its work each time that it is launched") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto sum = cuda::to_device(*on, make_tensor({4}, {0, 0, 0, 0}));
    auto added = cuda::to_device(*on, make_tensor({4}, {1, 2, 3, 4}));
    REQUIRE(sum);
    REQUIRE(added);
    REQUIRE(on->synchronise());
    auto graph = cuda::graph::capture(*on, [&] {
      cuda::add<float>(*on, added->values<float>(on->device()), sum->values<float>(on->device()),
                       sum->mutable_values<float>(on->device()));
    });
    REQUIRE_MESSAGE(graph, (graph ? "" : graph.error().message));
    CHECK(cuda::to_host(*on, *sum)->values<float>()[3] == 0);
    for (int turn = 0; turn < 3; ++turn)
      REQUIRE(graph->launch());
    CHECK(cuda::to_host(*on, *sum)->values<float>()[3] == 12);
  }

  TEST_CASE("a graph keeps the memory that it was written with") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, make_tensor({4}, {1, 2, 3, 4}));
    auto result = on->make(dtype::f32, {4});
    REQUIRE(value);
    auto work = [&] {
      auto between = on->make(dtype::f32, {4}); // let go at the end, and in the graph for ever
      auto where = on->device();
      cuda::scale<float>(*on, 3, value->values<float>(where), between.mutable_values<float>(where));
      cuda::scale<float>(*on, 2, between.values<float>(where), result.mutable_values<float>(where));
    };
    auto graph = cuda::graph::capture(*on, work);
    REQUIRE(graph);
    auto other = on->make(dtype::f32, {4});
    cuda::fill<float>(*on, other.mutable_values<float>(on->device()), 7);
    REQUIRE(graph->launch());
    CHECK(cuda::to_host(*on, result)->values<float>()[3] == 24);
    CHECK(cuda::to_host(*on, other)->values<float>()[3] == 7);
  }

  TEST_CASE("a graph needs the memory that is in use at one time, and none of the context's") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, make_tensor({1 << 16}, std::vector<float>(1 << 16, 1.0F)));
    REQUIRE(value);
    auto kept = on->memory().bytes_kept(), used = on->memory().bytes_in_use();
    std::vector<const void*> places;
    auto graph = cuda::graph::capture(*on, [&] {
      for (int turn = 0; turn < 4; ++turn) {
        auto doubled = on->make(dtype::f32, {1 << 16});
        CHECK(doubled.is_unique()); // so that a tape computes as it does without a graph
        places.push_back(doubled.data());
        cuda::scale<float>(*on, 2, value->values<float>(on->device()),
                           doubled.mutable_values<float>(on->device()));
      }
    });
    REQUIRE(graph);
    CHECK(std::ranges::count(places, places.front()) == 4);
    CHECK(on->memory().bytes_kept() == kept);
    CHECK(on->memory().bytes_in_use() == used);
  }

  TEST_CASE("work that throws is not captured, and the context goes on") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, make_tensor({4}, {1, 2, 3, 4}));
    REQUIRE(value);
    auto throws = [&] { throw std::runtime_error{"no more"}; };
    CHECK_THROWS_AS(static_cast<void>(cuda::graph::capture(*on, throws)), std::runtime_error);
    auto used = on->memory().bytes_in_use();
    auto other = on->make(dtype::f32, {4});
    CHECK(on->memory().bytes_in_use() > used);
    CHECK(cuda::sum(*on, elements{*value}) == 10);
  }

  TEST_CASE("work that waits cannot be captured, and the error says so") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = cuda::to_device(*on, make_tensor({4}, {1, 2, 3, 4}));
    REQUIRE(value);
    CHECK(cuda::sum(*on, elements{*value}) == 10);
    auto graph
      = cuda::graph::capture(*on, [&] { static_cast<void>(cuda::sum(*on, elements{*value})); });
    REQUIRE(!graph);
    CHECK(graph.error().message.find("Capture") != std::string::npos);
  }

  TEST_CASE("an error after which every call fails is known as the end of the device") {
    // Illegal addresses and instructions, ECC and NVLink, an assertion, a lost client of MPS; those
    // of CUDA 13, too: contained errors, leaks of tensor memory, devices outside of CUDA.
    for (int code : {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
      CAPTURE(code);
      auto failed = cuda::detail::check(static_cast<cudaError_t>(code), "kernel<<<>>>", "a.cu", 7);
      REQUIRE(!failed);
      CHECK(failed.error().code == errc::unavailable);
      CHECK(failed.error().message.find("from kernel<<<>>> on gpu:0 (a.cu:7)")
            != std::string::npos);
      CHECK(failed.error().message.find("end it and start it again") != std::string::npos);
    }
    // An argument, a configuration, resources of a launch, a capture: the next call may succeed.
    for (int code : {1, 2, 9, 98, 400, 600, 701, 720, 801, 900, 901})
      CHECK(!cuda::detail::is_sticky(static_cast<cudaError_t>(code)));
  }

  TEST_CASE("a context keeps its first failure, and does nothing after it") {
    auto on = cuda::context::create(0);
    REQUIRE(on);
    auto value = on->make(dtype::f32, {16});
    auto larger = on->make(dtype::f32, {int64_t{1} << 44});
    CHECK(larger.element_count() == 0);
    CHECK(std::isnan(cuda::sum(*on, elements{value})));
    CHECK(cuda::count_non_finite(*on, elements{value}) == 0);
    cuda::fill<float>(*on, value.mutable_values<float>(on->device()), 1);
    auto failure = on->synchronise();
    REQUIRE(!failure);
    CHECK(failure.error().code == errc::resource);
    CHECK(failure.error().message.find("gpu:0") != std::string::npos);
    CHECK(!cuda::to_device(*on, zeros({1})));
    CHECK(!cuda::to_host(*on, value));
  }
}
