// SPDX-License-Identifier: Apache-2.0
// Goal: a GPU that breaks, or has no memory left, is told from one that works. Method: an emulated
// GPU that is broken, and starved, while a gpu actor owns it.
#include "actors/gpu/cuda_device.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/training/variable_copies.hpp"
#include "actors/world/ask.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <functional>
#include <future>
#include <string>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A launch that takes some bytes of the device's memory.
std::function<void(compute_stream&)> taking(size_t bytes) {
  return [bytes](compute_stream& on) {
    static_cast<void>(on.make(dtype::f32, {static_cast<int64_t>(bytes / sizeof(float))}));
  };
}

/// A gpu actor over the first emulated GPU.
struct owned_gpu {
  owned_gpu() {
    auto opened = open_cuda_device(0, 1);
    REQUIRE(opened);
    device = *opened;
    actor = world.system().spawn(gpu, gpu_config{device, 60s, &world});
  }

  ~owned_gpu() {
    emulated::break_device(cudaSuccess);
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }

  expected<device_work_done> ask_for(size_t bytes) {
    return ask<device_work_done>(world, actor,
                                 device_work{.purpose = "some memory", .launch = taking(bytes)});
  }

  troupe::world world = world::threads({.threads = 2});
  std::shared_ptr<compute_device> device;
  gpu_actor actor;
};

/// Waits until the first stream of a device has done what it was asked.
void finish(compute_device& device) {
  std::promise<void> done;
  REQUIRE(device.notify(0, [&] { done.set_value(); }));
  done.get_future().wait();
}

} // namespace

TEST_SUITE("actors/gpu/emulated_device") {
  TEST_CASE("a GPU that breaks is lost for good, and all hear of it in CUDA's words") {
    owned_gpu stage;
    REQUIRE(stage.ask_for(64));
    emulated::break_device(cudaErrorIllegalAddress);
    auto refused = stage.ask_for(64);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::unavailable);
    CHECK_MESSAGE(refused.error().message.find("gpu:0 (") == 0, refused.error().message);
    CHECK(refused.error().message.find(" is lost: ") != std::string::npos);
    std::promise<error> end;
    stage.actor->attach_functor([&](const caf::error& why) { end.set_value(from_caf(why)); });
    CHECK(end.get_future().get() == refused.error());
    CHECK(stage.device->loss());
  }

  TEST_CASE("a GPU that is lost is not taken for one without pinned memory") {
    owned_gpu stage;
    emulated::break_device(cudaErrorIllegalAddress);
    auto here = stage.device->stream(0).make_on_host(dtype::f32, {1000});
    REQUIRE(!here);
    CHECK(here.error().code == errc::unavailable);
  }

  TEST_CASE("whatever error a GPU has for everything, it is lost") {
    owned_gpu stage;
    emulated::break_device(static_cast<cudaError_t>(999)); // cudaErrorUnknown
    auto lost = stage.device->loss();
    REQUIRE(lost);
    CHECK(lost->code == errc::unavailable);
    CHECK(stage.ask_for(64).error().code == errc::unavailable);
  }

  TEST_CASE(
    "variables are copied by way of pinned memory, and a step like the last takes no more") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    auto pageable = emulated::pageable_copies();
    size_t taken = 0;
    for (float step : {1.F, 2.F, 3.F, 4.F}) {
      const tensor variables[] = {make_tensor({2}, {step, 2 * step}), make_tensor({1}, {3 * step})};
      auto there = *stream.resident(variables);
      auto first = *stream.to_host(there[0]), second = *stream.to_host(there[1]);
      finish(*device);
      CHECK(first.values<float>()[1] == 2 * step);
      CHECK(second.values<float>()[0] == 3 * step);
      if (step == 3) taken = emulated::pinned_bytes();
    }
    CHECK(emulated::pinned_bytes() == taken);
    CHECK(emulated::pageable_copies() == pageable);
  }

  TEST_CASE(
    "a value of the host that takes the position of a GPU's value is copied from the host") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    const tensor of_gpu[] = {*stream.to_device(make_tensor({2}, {1, 2}))};
    const tensor of_host[] = {make_tensor({2}, {3, 4})};
    REQUIRE(stream.resident(of_gpu, true));
    auto before = emulated::bytes_to_device();
    auto there = *stream.resident(of_host, true);
    auto seen = *stream.to_host(there[0]);
    finish(*device);
    CHECK(seen.values<float>()[1] == 4);
    CHECK(emulated::bytes_to_device() - before == 2 * sizeof(float));
  }

  TEST_CASE("the host's memory may be written again once a value was asked to the GPU") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    auto value = make_tensor({1}, {1});
    auto first = *stream.to_device(value);
    value.mutable_values<float>()[0] = 2;
    auto second = *stream.to_device(value);
    value.mutable_values<float>()[0] = 3;
    auto first_seen = *stream.to_host(first), second_seen = *stream.to_host(second);
    finish(*device);
    CHECK(first_seen.values<float>()[0] == 1);
    CHECK(second_seen.values<float>()[0] == 2);
  }

  TEST_CASE("values that a message copies are in the host's memory as soon as they are read") {
    auto device = *open_cuda_device(0, 1);
    variable_copies copies{{.name = "w", .device = device}, make_tensor({2}, {5, 6})};
    const update_plan plan{.rule = rules::sgd{.learning_rate = 1},
                           .average = moving_average{.decay = 0.5}};
    REQUIRE(copies.prepare(plan));
    auto gradients = copies.placed({make_tensor({2}, {2, 2})}).value();
    REQUIRE(copies.update(plan, {gradients}));
    CHECK(copies.read(whole_variable)->values<float>()[1] == 4);
    CHECK(copies.read_average()->values<float>()[1] == 5);
    REQUIRE(copies.update(plan, {gradients}));
    auto saved = copies.saved();
    REQUIRE(saved);
    CHECK(saved->value.values<float>()[1] == 2);
    CHECK(saved->average->values.values<float>()[1] == 3.5F);
  }

  TEST_CASE("a stream of another handle reads what was published, though no host has waited") {
    auto holding = *open_cuda_device(0, 1), computing = *open_cuda_device(0, 1);
    variable_copies copies{{.name = "w", .device = holding}, filled(dtype::f32, {100}, 5)};
    const update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    REQUIRE(copies.prepare(plan));
    auto gradients = copies.placed({filled(dtype::f32, {100}, 2)}).value();
    for (float expected : {3.F, 1.F, -1.F}) {
      CAPTURE(expected);
      REQUIRE(copies.update(plan, {gradients}));
      auto value = copies.read_in_place(0).value();
      holding->publish(0);
      if (expected < 0) { // the stream begins anew, and what it published is not forgotten
        CHECK(!holding->stream(0).make(dtype::f32, {int64_t{1} << 40}));
        CHECK(!holding->notify(0, [] {}));
      }
      auto& stream = computing->stream(0);
      auto seen = *stream.to_host(value);
      REQUIRE(stream.wait());
      CHECK(seen.values<float>()[99] == expected);
    }
  }

  TEST_CASE("updates that are asked for together are one launch, also behind one that fails") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    const update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    std::vector<variable_copies> variables;
    for (float value : {5.F, 6.F, 7.F}) {
      variables.emplace_back(copies_config{.name = "w", .device = device},
                             filled(dtype::f32, {100}, value));
      REQUIRE(variables.back().prepare(plan));
    }
    const std::vector<gradient> gradients
      = variables.front().placed({filled(dtype::f32, {100}, 2)}).value();
    auto update_all = [&](size_t count) {
      return [&, count]() -> expected<void> {
        for (size_t i = 0; i < count; ++i)
          if (auto done = variables[i].update(plan, {gradients}); !done) return done;
        if (count < variables.size()) return fail(errc::out_of_range, "there are no more");
        return {};
      };
    };
    REQUIRE(stream.wait());
    auto before = emulated::kernels_run();
    REQUIRE(stream.update_together(update_all(3)));
    REQUIRE(stream.wait());
    CHECK(emulated::kernels_run() == before + 1);
    CHECK(stream.update_together(update_all(2)).error().code == errc::out_of_range);
    std::vector<float> seen;
    for (const auto& one : variables) {
      auto value = one.read(whole_variable).value();
      REQUIRE(stream.wait());
      seen.push_back(value.values<float>()[99]);
    }
    CHECK(seen == std::vector<float>{1, 2, 5});
  }

  TEST_CASE("no update of several in one request is made if the GPU has no memory left") {
    auto device = *open_cuda_device(0, 1);
    variable_copies copies{{.name = "w", .device = device}, filled(dtype::f32, {100}, 5)};
    const update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    REQUIRE(copies.prepare(plan));
    auto gradients = copies.placed({filled(dtype::f32, {100}, 2)}).value();
    auto reader = copies.read_in_place(0).value(); // the new version has to lie elsewhere
    auto updated = device->stream(0).update_together([&]() -> expected<void> {
      if (auto done = copies.update(plan, {gradients}); !done) return done;
      return device->stream(0).make(dtype::f32, {int64_t{1} << 40}).map([](const tensor&) {});
    });
    CHECK(updated.error().code == errc::resource);
    CHECK(!device->notify(0, [] {})); // and the stream begins anew
    CHECK(copies.first().version == 0);
    auto value = copies.read(whole_variable).value();
    REQUIRE(copies.wait());
    CHECK(value.values<float>()[99] == 5);
  }

  TEST_CASE("pinned memory of the host is copied from as it is") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    auto value = *stream.make_on_host(dtype::f32, {1000});
    auto taken = emulated::pinned_bytes();
    REQUIRE(stream.to_device(value));
    CHECK(emulated::pinned_bytes() == taken);
    finish(*device);
  }

  TEST_CASE("without pinned memory values go to the GPU all the same") {
    auto device = *open_cuda_device(0, 1);
    auto& stream = device->stream(0);
    emulated::set_pinned_bytes(0);
    auto there = stream.to_device(make_tensor({1}, {5}));
    emulated::set_pinned_bytes(size_t{1} << 30);
    REQUIRE(there);
    auto seen = *stream.to_host(*there);
    finish(*device);
    CHECK(seen.values<float>()[0] == 5);
  }

  TEST_CASE("work that finds no memory fails alone, though it is launched with other work") {
    owned_gpu stage;
    caf::scoped_actor user{stage.world.system()};
    auto ask = [&](std::function<void(compute_stream&)> launch) {
      device_work work{.launch = std::move(launch), .is_answered_when_queued = true};
      return user->request(stage.actor, caf::infinite, std::move(work));
    };
    auto code_of = [](auto& asked) {
      auto code = errc::none;
      asked.receive([](const device_work_done&) {},
                    [&](const caf::error& why) { code = from_caf(why).code; });
      return code;
    };
    std::promise<void> may_begin;
    auto first = ask([&](compute_stream&) { may_begin.get_future().wait(); });
    auto well = ask(taking(64)), starved = ask(taking(size_t{1} << 40)), next = ask(taking(64));
    may_begin.set_value();
    CHECK(code_of(first) == errc::none);
    CHECK(code_of(well) == errc::none);
    CHECK(code_of(starved) == errc::resource);
    CHECK(code_of(next) == errc::none);
    CHECK(!stage.device->loss());
  }

  TEST_CASE("work that finds no memory fails alone, and the GPU goes on") {
    owned_gpu stage;
    auto refused = stage.ask_for(size_t{1} << 40);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::resource);
    CHECK(!stage.device->loss());
    CHECK(stage.ask_for(64));
  }
}
