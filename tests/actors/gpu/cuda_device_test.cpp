// SPDX-License-Identifier: Apache-2.0
// Goal: a GPU is a compute_device: copies, sums, streams, and answers to its callers. Method: the
// first GPU that there is, real or emulated; values against those of the host.
#include "actors/gpu/cuda_device.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/training/replica.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/updates/update_pass.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

#include <caf/send.hpp>

#include <future>
#include <string>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<compute_device> open(uint32_t streams = 1) {
  auto opened = open_cuda_device(0, streams);
  REQUIRE_MESSAGE(opened, (opened ? std::string{} : opened.error().message));
  return *opened;
}

/// Waits until a stream has done what it was asked, as its own callback tells.
void finish(compute_device& device, uint32_t stream = 0) {
  std::promise<void> done;
  REQUIRE(device.notify(stream, [&] { done.set_value(); }));
  REQUIRE(done.get_future().wait_for(20s) == std::future_status::ready);
}

template <class T>
T good(expected<T> result) {
  REQUIRE_MESSAGE(result, (result ? std::string{} : result.error().message));
  return std::move(*result);
}

std::vector<float> floats(const tensor& of) {
  auto values = of.values<float>();
  return {values.begin(), values.end()};
}

tensor ramp(int64_t count, float step) {
  tensor result{dtype::f32, {count}};
  for (int64_t i = 0; i < count; ++i)
    result.mutable_values<float>()[static_cast<size_t>(i)] = step * static_cast<float>(i % 97);
  return result;
}

/// A ramp that is halved ten times on the GPU.
tensor halved(compute_stream& on, uint32_t step) {
  const auto& context = dynamic_cast<cuda_stream&>(on).context();
  auto there = good(on.to_device(ramp(2003, static_cast<float>(step))));
  auto values = there.mutable_values<float>(on.where());
  for (int i = 0; i < 10; ++i)
    cuda::scale<float>(context, 0.5F, values, values);
  return good(on.to_host(there));
}

} // namespace

TEST_SUITE("actors/gpu/cuda_device") {
  TEST_CASE("a value goes to the GPU, and comes back as it was") {
    auto device = open();
    auto& stream = device->stream(0);
    auto value = ramp(1003, 0.37F);
    auto there = good(stream.to_device(value));
    CHECK(there.device() == troupe::device{device_kind::cuda, 0});
    CHECK(good(stream.to_device(there)).data() == there.data());
    auto back = good(stream.to_host(there));
    finish(*device);
    CHECK(floats(back) == floats(value));
    CHECK(device->name().starts_with("gpu:0 ("));
    CHECK(!device->loss());
  }

  TEST_CASE("sums are added in order, to the bits of the host") {
    auto device = open();
    auto& stream = device->stream(0);
    std::vector<tensor> values{ramp(517, 0.1F), ramp(517, 1e5F), ramp(517, -0.3F)};
    auto there = mapped(values, [&](const auto& value) { return good(stream.to_device(value)); });
    auto sum = good(stream.to_host(good(stream.sum(there))));
    tensor wanted{dtype::f32, {517}};
    add_up(values, wanted);
    finish(*device);
    CHECK(floats(sum) == floats(wanted));
  }

  TEST_CASE("a sum of a dtype that GPUs do not add is refused") {
    auto device = open();
    auto& stream = device->stream(0);
    const tensor values[] = {good(stream.to_device(zeros({3}, dtype::i64))),
                             good(stream.to_device(zeros({3}, dtype::i64)))};
    CHECK(stream.sum(values).error().code == errc::unimplemented);
  }

  TEST_CASE("a variable is copied once for each version") {
    auto device = open();
    auto& stream = device->stream(0);
    std::vector<tensor> variables{ramp(10, 1)};
    auto first = good(stream.resident(variables));
    auto again = good(stream.resident(variables));
    CHECK(first[0].data() == again[0].data());
    variables[0] = ramp(10, 2);
    auto changed = good(stream.resident(variables));
    auto back = good(stream.to_host(changed[0]));
    finish(*device);
    CHECK(floats(back) == floats(variables[0]));
  }

  TEST_CASE("a variable that lies on the GPU is updated there, to the bits of the host") {
    auto device = open();
    auto& stream = device->stream(0);
    const update_plan plan{
      .rule = rules::adam{}, .clip = {.norm_max = 2}, .average = moving_average{}};
    const auto value = ramp(6 * 33, 0.37F).reshape({6, 33});
    variable_state here{.value = value.clone()};
    variable_state there{.value = good(stream.to_device(value))};
    REQUIRE(host_stream().prepare(here, plan));
    REQUIRE(stream.prepare(there, plan));
    tensor rows{dtype::i64, {2}};
    rows.mutable_values<int64_t>()[0] = 4;
    rows.mutable_values<int64_t>()[1] = 1;
    const auto dense = ramp(6 * 33, 0.1F).reshape({6, 33});
    const auto some = ramp(2 * 33, 0.2F).reshape({2, 33});
    const std::vector<gradient> given{dense, indexed_slices{rows, some, {6, 33}}};
    const std::vector<gradient> placed{good(stream.to_device(dense)),
                                       indexed_slices{rows, good(stream.to_device(some)), {6, 33}}};
    for (size_t count : {2U, 1U}) {
      const measured_mean of_host{here, {std::span{given}.last(count)}};
      const measured_mean of_device{there, {std::span{placed}.last(count)}};
      CHECK(good(stream.squared_norms({&of_device, 1}))
            == good(host_stream().squared_norms({&of_host, 1})));
      REQUIRE(host_stream().update(here, plan, {std::span{given}.last(count)}));
      REQUIRE(stream.update(there, plan, {std::span{placed}.last(count)}));
    }
    auto arrays = arrays_of(there);
    for (size_t i = 0; i < arrays.size(); ++i) {
      CHECK(arrays[i]->device() == device->where());
      auto back = good(stream.to_host(*arrays[i]));
      REQUIRE(stream.wait());
      CHECK(floats(back) == floats(*arrays_of(here)[i]));
    }
    finish(*device);
  }

  TEST_CASE("several replicas on one GPU have streams of their own, and their gpu answers each") {
    auto world = world::threads({.threads = 4});
    auto device = open(4);
    auto actor = world.system().spawn(gpu, gpu_config{device, 60s, &world});
    std::vector<tensor> results(4);
    std::vector<std::promise<void>> over(4);
    for (uint32_t i = 0; i < 4; ++i) {
      auto body = [&results, &over, i](activity& activity) -> task<void> {
        auto computing = activity.compute_on_device(
          [&results, i](std::stop_token, compute_stream& on) { results[i] = halved(on, i + 1); });
        auto outcome = co_await computing;
        CHECK(outcome.thrown == nullptr);
        over[i].set_value();
      };
      world.system().spawn(
        replica, replica_config{
                   .index = i, .world = &world, .processor = processor{actor, i}, .body = body});
    }
    for (auto& one : over)
      REQUIRE(one.get_future().wait_for(60s) == std::future_status::ready);
    for (uint32_t i = 0; i < 4; ++i)
      CHECK(results[i].values<float>()[96] == 96 * static_cast<float>(i + 1) / 1024);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a GPU that is not there is refused") {
    auto refused = open_cuda_device(1000, 1);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::not_found);
  }
}
