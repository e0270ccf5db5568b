// SPDX-License-Identifier: Apache-2.0
// Goal: a device adds what replicas bring to the bits that the host comes to, and says which it is
// when it does not. Method: a device that is a part of the processor, and the host's own sums.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/reduce/cross_device_choice.hpp"
#include "strategies/reduce/reduction_on_device.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/strategies/played_gpus.hpp"
#include "tests/strategies/refusal.hpp"

namespace reduction_on_device_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct adding_device {
  explicit adding_device(cpu_device_options options = {}, job_time deadline = 60s)
    : device(std::make_shared<cpu_device>(0, std::move(options))), ops(device, deadline) {}

  [[nodiscard]] tensor reduce(reduce_op op, const std::vector<tensor>& values) const {
    device_values value{{values.begin(), values.end()},
                        cpu_devices(static_cast<uint32_t>(values.size()))};
    return std::get<tensor>(ops.reduce(op, value, destinations{value.devices}));
  }

  std::shared_ptr<cpu_device> device;
  reduction_on_device ops;
};

// Values with sums that depend on the order of additions.
std::vector<tensor> samples(uint32_t count, dtype type = dtype::f32, int64_t size = 1003) {
  std::vector<tensor> values;
  for (uint32_t i = 0; i < count; ++i)
    values.push_back(sample(type, {size}, i));
  return values;
}

} // namespace

TEST_SUITE("strategies/reduce/reduction_on_device") {
  TEST_CASE("sums and means have the bits of the host's, for any number of replicas") {
    for (auto type : {dtype::f32, dtype::f64})
      for (uint32_t replicas : {1U, 2U, 3U, 8U})
        for (auto op : {reduce_op::sum, reduce_op::mean}) {
          adding_device adding;
          auto values = samples(replicas, type);
          CHECK(is_same(adding.reduce(op, values), reduce_arrays(op, values)));
          CHECK(adding.device->uploads() == replicas);
        }
  }

  TEST_CASE("values that devices do not add, and empty arrays, are added on the host") {
    for (auto type : {dtype::i32, dtype::i64, dtype::f16, dtype::bf16})
      for (auto op : {reduce_op::sum, reduce_op::mean}) {
        adding_device adding;
        auto values = samples(3, type);
        CHECK(is_same(adding.reduce(op, values), reduce_arrays(op, values)));
        CHECK(adding.device->uploads() == 0);
      }
    adding_device adding;
    CHECK(adding.reduce(reduce_op::sum, samples(3, dtype::f32, 0)).element_count() == 0);
  }

  TEST_CASE("values of a batch are reduced one by one, in their order") {
    adding_device adding;
    std::vector<std::pair<device_values, destinations>> batch;
    std::vector<std::vector<tensor>> given;
    for (int64_t size : {5, 0, 7, 1}) {
      const auto& values = given.emplace_back(samples(3, dtype::f32, size));
      batch.emplace_back(device_values{{values.begin(), values.end()}, cpu_devices(3)},
                         destinations{cpu_devices(3)});
    }
    for (int64_t bytes : {0, 1, 1000}) {
      auto reduced = adding.ops.batch_reduce(reduce_op::mean, batch, {.bytes_per_pack = bytes});
      REQUIRE(reduced.size() == given.size());
      for (size_t i = 0; i < given.size(); ++i)
        CHECK(is_same(std::get<tensor>(reduced[i]), reduce_arrays(reduce_op::mean, given[i])));
    }
  }

  TEST_CASE("a value that lies on the device already is not copied there, and stays as it is") {
    adding_device adding;
    auto values = samples(3);
    auto there = values;
    for (auto& value : there)
      value = value_or_throw(adding.device->stream(0).to_device(value));
    auto before = adding.device->uploads();
    CHECK(is_same(adding.reduce(reduce_op::sum, there), reduce_arrays(reduce_op::sum, values)));
    CHECK(adding.device->uploads() == before);
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(is_same(there[i], values[i]));
  }

  TEST_CASE("nothing of a reduction stays on the device") {
    adding_device adding;
    static_cast<void>(adding.reduce(reduce_op::mean, samples(4)));
    CHECK(adding.device->bytes_in_use() == 0);
  }

  TEST_CASE("values that do not fit together are refused, naming the replica") {
    adding_device adding;
    auto values = samples(2);
    values.push_back(sample(dtype::f32, {7}, 2));
    auto refused = refusal_of([&] { static_cast<void>(adding.reduce(reduce_op::sum, values)); });
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message.find("replica 2 has a value of shape [7]") == 0);
  }

  TEST_CASE("a device without memory refuses one reduction, and makes the next") {
    adding_device adding{{.bytes_max = 4000}};
    auto refused
      = refusal_of([&] { static_cast<void>(adding.reduce(reduce_op::sum, samples(3))); });
    CHECK(refused.code == errc::resource);
    auto few = samples(2, dtype::f32, 10);
    CHECK(is_same(adding.reduce(reduce_op::sum, few), reduce_arrays(reduce_op::sum, few)));
  }

  TEST_CASE("a device that is lost, or does not come, is named") {
    adding_device lost, late{{}, 50ms};
    lost.device->lose({errc::unavailable, "CUDA error 700"});
    auto refused = refusal_of([&] { static_cast<void>(lost.reduce(reduce_op::sum, samples(2))); });
    CHECK(refused.code == errc::unavailable);
    CHECK(refused.message.find("CUDA error 700") != std::string::npos);
    late.device->stream(0).hold([](std::function<void()>) {});
    auto waited = refusal_of([&] { static_cast<void>(late.reduce(reduce_op::sum, samples(2))); });
    CHECK(waited.code == errc::deadline_exceeded);
    CHECK(waited.message.find("cpu:0 has not done a reduction") == 0);
  }

  TEST_CASE("strategies that name GPUs reduce by the first of them where there is no NCCL") {
    auto world = world::virtual_time();
    played_gpus gpus{3, false};
    mirrored_strategy strategy{world, {.devices = {"gpu:2", "gpu:1"}, .gpus = gpus.source()}};
    auto values = samples(2);
    auto sum = strategy.extended().reduce_to(
      reduce_op::sum, distributed_value<tensor>::per_replica(values), destinations{"cpu:0"});
    CHECK(gpus.uploads() == 0); // wanted elsewhere, and on the host as it is
    CHECK(is_same(sum.primary(), reduce_arrays(reduce_op::sum, values)));
    auto mirrored = strategy.extended().reduce_to(
      reduce_op::sum, distributed_value<tensor>::per_replica(values),
      destinations{std::vector<std::string>{"gpu:2", "gpu:1"}});
    CHECK(is_same(mirrored.primary(), sum.primary()));
    CHECK(gpus.uploads() == 2);
    CHECK(gpus.opened.back()->uploads() == 2);
    CHECK(gpus.opened.back()->where().index == 2);
  }

  TEST_CASE("it is made by name, with GPUs") {
    played_gpus gpus{2};
    auto ops = make_cross_device_ops("reduction_to_one_device", {"gpu:1", "gpu:0"}, gpus.source());
    CHECK(ops->name() == "reduction_to_one_device");
    CHECK(ops->waits());
    REQUIRE(gpus.opened.size() == 1);
    CHECK(gpus.opened[0]->where().index == 1);
    CHECK(!make_cross_device_ops("reduction_to_one_device", {"cpu:0"}, gpus.source())->waits());
  }
}

} // namespace reduction_on_device_test
