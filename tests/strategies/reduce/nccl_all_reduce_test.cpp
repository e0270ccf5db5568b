// SPDX-License-Identifier: Apache-2.0
// Goal: devices of a process reduce to what the other operations reduce to, and are given up when
// one of them does not come. Method: devices that are parts of the processor, and a plain sum.
#include "actors/gpu/cpu_collectives.hpp"
#include "actors/gpu/cpu_device.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/reduce/nccl_all_reduce.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/actors/gpu/counted_collectives.hpp"
#include "tests/strategies/refusal.hpp"

#include <cstdlib>
#include <future>

namespace nccl_all_reduce_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct reducing_devices {
  explicit reducing_devices(uint32_t count, int num_packs = 1, job_time deadline = 60s) {
    for (uint32_t i = 0; i < count; ++i)
      devices.push_back(std::make_shared<cpu_device>(static_cast<int>(i)));
    ops = std::make_shared<nccl_all_reduce>(
      std::vector<std::shared_ptr<compute_device>>{devices.begin(), devices.end()}, library,
      num_packs, deadline);
  }

  tensor reduce(reduce_op op, const std::vector<tensor>& values) const {
    device_values value{{values.begin(), values.end()},
                        cpu_devices(static_cast<uint32_t>(values.size()))};
    return std::get<tensor>(ops->reduce(op, value, destinations{value.devices}));
  }

  std::shared_ptr<counted_collectives> library = std::make_shared<counted_collectives>();
  std::vector<std::shared_ptr<cpu_device>> devices;
  std::shared_ptr<nccl_all_reduce> ops;
};

/// Takes collectives, and is never done with taking them.
class endless_participant final : public collective_participant {
public:
  [[nodiscard]] expected<bool> is_ready() override { return !is_asked_; }

  [[nodiscard]] expected<void> ask(std::span<const device_collective>, compute_stream&) override {
    is_asked_ = true;
    return {};
  }

  void abort() override {}

private:
  bool is_asked_ = false;
};

struct endless_collectives final : collective_library {
  [[nodiscard]] std::string_view name() const override { return "endless"; }

  [[nodiscard]] expected<collective_id> make_id() override { return collective_id{}; }

  [[nodiscard]] expected<std::unique_ptr<collective_participant>>
  join(const collective_id&, uint32_t, uint32_t, compute_device&) override {
    return std::make_unique<endless_participant>();
  }
};

/// Reductions that are done once an actor has run.
class waiting_ops final : public packed_all_reduce {
public:
  explicit waiting_ops(world& of) : packed_all_reduce(0), world_(of) {}

  [[nodiscard]] std::string_view name() const override { return "waiting"; }

  [[nodiscard]] bool waits() const override { return true; }

protected:
  [[nodiscard]] std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const override {
    std::promise<void> ran;
    world_.system().spawn([&ran] { ran.set_value(); });
    if (ran.get_future().wait_for(20s) != std::future_status::ready) std::abort();
    return {reduce_arrays(op, packs.front())};
  }

private:
  world& world_;
};

// Values with sums that are exact, in whatever order.
std::vector<tensor> exact_values(uint32_t count, dtype type = dtype::f32) {
  std::vector<tensor> values;
  for (uint32_t i = 0; i < count; ++i)
    values.push_back(filled(type, {5}, static_cast<double>(i + 1)));
  return values;
}

} // namespace

TEST_SUITE("strategies/reduce/nccl_all_reduce") {
  TEST_CASE("sums and means are those of the other operations, for any number of replicas") {
    for (uint32_t devices : {1U, 2U, 3U})
      for (uint32_t replicas : {3U, 4U, 8U})
        for (auto type : {dtype::f32, dtype::f64, dtype::i64, dtype::i32}) {
          reducing_devices group{devices};
          auto values = exact_values(replicas, type);
          for (auto op : {reduce_op::sum, reduce_op::mean})
            CHECK(is_same(group.reduce(op, values), reduce_arrays(op, values)));
        }
  }

  TEST_CASE("sums may stay on every device, and what no device adds is left") {
    reducing_devices group{2};
    const std::vector<std::vector<tensor>> values{exact_values(4), exact_values(3, dtype::i32),
                                                  exact_values(2, dtype::f64)};
    auto sums = group.ops->sums_on_devices(values);
    CHECK(group.library->calls == 2);
    CHECK(sums[1].empty());
    for (size_t i : {0U, 2U}) {
      REQUIRE(sums[i].size() == 2);
      CHECK(sums[i][0].data() != sums[i][1].data());
      for (const auto& sum : sums[i])
        CHECK(is_same(sum, reduce_arrays(reduce_op::sum, values[i])));
    }
    const std::vector<std::vector<tensor>> uneven{{zeros({2}), zeros({3})}};
    CHECK(refusal_of([&] { static_cast<void>(group.ops->sums_on_devices(uneven)); }).code
          == errc::invalid_argument);
  }

  TEST_CASE("floats are added by the devices, in turn") {
    reducing_devices group{2};
    static_cast<void>(group.reduce(reduce_op::sum, exact_values(5)));
    CHECK(group.devices[0]->uploads() == 3);
    CHECK(group.devices[1]->uploads() == 2);
  }

  TEST_CASE("all packs of a batch are one call of each device, whatever the packs") {
    struct {
      int num_packs;
      int64_t bytes_per_pack;
      uint64_t packs;
    } cases[] = {{1, 0, 1}, {2, 0, 2}, {0, 0, 3}, {1, 1, 3}, {1, 24, 2}};

    for (const auto& one : cases)
      for (auto op : {reduce_op::sum, reduce_op::mean}) {
        reducing_devices group{2, one.num_packs};
        std::vector<std::pair<device_values, destinations>> batch;
        for (int64_t size : {5, 3, 4}) {
          std::vector<tensor> values;
          for (double replica : {1., 2., 3.})
            values.push_back(filled(dtype::f32, {size}, 3 * replica));
          batch.emplace_back(device_values{{values.begin(), values.end()}, cpu_devices(3)},
                             destinations{cpu_devices(3)});
        }
        auto reduced = group.ops->batch_reduce(op, batch, {.bytes_per_pack = one.bytes_per_pack});
        for (size_t i = 0; i < batch.size(); ++i) {
          auto values = mapped(batch[i].first.components,
                               [](const auto& component) { return std::get<tensor>(component); });
          CHECK(is_same(std::get<tensor>(reduced[i]), reduce_arrays(op, values)));
        }
        CHECK(group.library->calls == 2);
        CHECK(group.library->arrays == 2 * one.packs);
      }
  }

  TEST_CASE("a strategy reduces by them") {
    auto world = world::virtual_time();
    reducing_devices group{2};
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(2), .cross_device_operations = group.ops}};
    auto weights = strategy.make_variable("w", zeros({5}));
    auto values = exact_values(2);
    auto sum = strategy.extended().reduce_to(
      reduce_op::sum, distributed_value<tensor>::per_replica(values), weights);
    CHECK(is_same(sum.primary(), reduce_arrays(reduce_op::sum, values)));
    CHECK(group.devices[1]->uploads() == 1);
  }

  TEST_CASE("fewer values than devices, and no devices at all, are refused") {
    reducing_devices group{3};
    CHECK(refusal_of([&] { static_cast<void>(group.reduce(reduce_op::sum, exact_values(2))); }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { reducing_devices{0}; }).code == errc::invalid_argument);
    CHECK(refusal_of([] { reducing_devices{1, -1}; }).code == errc::invalid_argument);
  }

  TEST_CASE("a device that does not come ends the reduction, and all after it") {
    reducing_devices group{2, 1, 50ms};
    group.devices[1]->stream(0).hold([](std::function<void()>) {});
    auto refused
      = refusal_of([&] { static_cast<void>(group.reduce(reduce_op::sum, exact_values(2))); });
    CHECK(refused.code == errc::deadline_exceeded);
    CHECK(refused.message.find("cpu:0 has not done a reduction") == 0);
    auto next
      = refusal_of([&] { static_cast<void>(group.reduce(reduce_op::sum, exact_values(2))); });
    CHECK(next.code == errc::unavailable);
  }

  TEST_CASE("a device that does not take a collective ends the reduction, too") {
    nccl_all_reduce endless{
      {std::make_shared<cpu_device>(0)}, std::make_shared<endless_collectives>(), 1, 50ms};
    auto values = exact_values(2);
    device_values value{{values.begin(), values.end()}, cpu_devices(2)};
    auto refused = refusal_of([&] {
      static_cast<void>(endless.reduce(reduce_op::sum, value, destinations{value.devices}));
    });
    CHECK(refused
          == error{errc::deadline_exceeded, "a device has not taken a collective in 0.1 s"});
  }

  TEST_CASE("a component that lies on its device already stays as it is") {
    reducing_devices group{2};
    auto values = exact_values(2);
    for (size_t i = 0; i < 2; ++i)
      values[i] = value_or_throw(group.devices[i]->stream(0).to_device(values[i]));
    auto before = exact_values(2);
    CHECK(is_same(group.reduce(reduce_op::sum, values), reduce_arrays(reduce_op::sum, before)));
    for (size_t i = 0; i < 2; ++i)
      CHECK(is_same(values[i], before[i]));
  }

  TEST_CASE("no thread that runs actors waits for a reduction, however small it is") {
    auto world = world::threads({.threads = 1});
    auto ops = std::make_shared<waiting_ops>(world);
    mirrored_strategy strategy{world, {.devices = cpu_devices(2), .cross_device_operations = ops}};
    auto weights = strategy.make_variable("w", zeros({5}));
    auto values = exact_values(2);
    auto sum = strategy.extended().reduce_to(
      reduce_op::sum, distributed_value<tensor>::per_replica(values), weights);
    CHECK(is_same(sum.primary(), reduce_arrays(reduce_op::sum, values)));
    CHECK(reducing_devices{1}.ops->waits());
  }

  TEST_CASE("a device that is lost is named") {
    reducing_devices group{2};
    group.devices[1]->lose({errc::unavailable, "CUDA error 700"});
    auto refused
      = refusal_of([&] { static_cast<void>(group.reduce(reduce_op::sum, exact_values(2))); });
    CHECK(refused.code == errc::unavailable);
    CHECK(refused.message.find("CUDA error 700") != std::string::npos);
  }
}

} // namespace nccl_all_reduce_test
