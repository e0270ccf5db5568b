// SPDX-License-Identifier: Apache-2.0
// Goal: strategies differ in devices, copies and duties as tf.distribute's do. Method: a table of
// properties, and the devices that each takes and refuses.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

namespace in_process_strategies_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using names = std::vector<std::string>;

names list(std::span<const std::string> devices) {
  return {devices.begin(), devices.end()};
}

error no_device(const std::string& name) {
  return {errc::invalid_argument,
          "there is no device '" + name
            + "'; processors are cpu:0, cpu:1 and so on, GPUs gpu:0, gpu:1"};
}

} // namespace

static_assert(!std::is_copy_constructible_v<mirrored_strategy>);
static_assert(!std::is_copy_assignable_v<mirrored_strategy>);

TEST_SUITE("strategies/kinds/in_process_strategies") {
  TEST_CASE("one device holds one replica and all variables") {
    auto world = world::virtual_time();
    one_device_strategy strategy{world, "CPU:3"};
    CHECK(strategy.num_replicas_in_sync() == 1);
    CHECK(list(strategy.extended().worker_devices()) == names{"cpu:3"});
    CHECK(list(strategy.extended().parameter_devices()) == names{"cpu:3"});
    CHECK(strategy.extended().non_slot_devices({}) == names{"cpu:3"});
    CHECK(strategy.make_variable("w", scalar(1)).devices() == names{"cpu:3"});
    CHECK(!strategy.extended().experimental_between_graph());
  }

  TEST_CASE("mirrored devices hold a replica and a copy each") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(3)}};
    CHECK(strategy.num_replicas_in_sync() == 3);
    CHECK(list(strategy.extended().worker_devices()) == cpu_devices(3));
    CHECK(list(strategy.extended().parameter_devices()) == cpu_devices(3));
    auto weights = strategy.make_variable("w", scalar(1));
    CHECK(weights.devices() == cpu_devices(3));
    CHECK(weights.copies() == 3);
    CHECK(!strategy.extended().experimental_between_graph());
  }

  TEST_CASE("under central storage replicas compute on many devices, and variables lie on one") {
    auto world = world::virtual_time();
    central_storage_strategy strategy{world, {.compute_devices = {"cpu:1", "cpu:2"}}};
    CHECK(strategy.num_replicas_in_sync() == 2);
    CHECK(list(strategy.extended().worker_devices()) == names{"cpu:1", "cpu:2"});
    CHECK(list(strategy.extended().parameter_devices()) == names{"cpu:0"});
    CHECK(strategy.make_variable("w", scalar(1)).copies() == 1);
    CHECK(strategy.extended().experimental_between_graph());
    central_storage_strategy single{world, {.compute_devices = {"cpu:1"}}};
    CHECK(list(single.extended().parameter_devices()) == names{"cpu:1"});
    central_storage_strategy chosen{
      world, {.compute_devices = {"cpu:1", "cpu:2"}, .parameter_device = "cpu:7"}};
    CHECK(list(chosen.extended().parameter_devices()) == names{"cpu:7"});
  }

  TEST_CASE("a parameter server strategy that is alone holds one copy for all and has all duties") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 3}};
    CHECK(strategy.num_replicas_in_sync() == 3);
    CHECK(strategy.make_variable("w", scalar(1)).copies() == 1);
    auto& extended = strategy.extended();
    CHECK(list(extended.worker_devices()) == cpu_devices(3));
    CHECK(list(extended.parameter_devices()) == names{"cpu:0"});
    CHECK(extended.experimental_between_graph());
    CHECK(extended.experimental_should_init());
    CHECK(extended.should_checkpoint());
    CHECK(extended.should_save_summary());
    CHECK(!extended.experimental_require_static_shapes());
    CHECK(extended.non_slot_devices(strategy.variables()) == names{"cpu:0"});
  }

  TEST_CASE("the default strategy has one replica and no devices to tell") {
    auto world = world::virtual_time();
    default_strategy strategy{world};
    CHECK(strategy.num_replicas_in_sync() == 1);
    CHECK(refusal_of([&] { static_cast<void>(strategy.extended().worker_devices()); })
          == error{errc::failed_precondition,
                   "worker_devices of the default strategy was asked for, which has none; ask a "
                   "strategy that has devices"});
    CHECK(refusal_of([&] { static_cast<void>(strategy.extended().parameter_devices()); }).code
          == errc::failed_precondition);
  }

  TEST_CASE("in one process, every strategy makes variables, checkpoints and summaries") {
    for_every_strategy([](strategy& strategy) {
      CHECK(strategy.extended().experimental_should_init());
      CHECK(strategy.extended().should_checkpoint());
      CHECK(strategy.extended().should_save_summary());
      CHECK(!strategy.extended().experimental_require_static_shapes());
    });
  }

  TEST_CASE("values are made for each replica by a function that is told which") {
    for_every_strategy([](strategy& strategy) {
      std::vector<value_context> asked;
      auto values
        = strategy.experimental_distribute_values_from_function([&asked](value_context context) {
            asked.push_back(context);
            return context.replica_id_in_sync_group;
          });
      REQUIRE(values.size() == strategy.num_replicas_in_sync());
      for (uint32_t i = 0; i < asked.size(); ++i) {
        CHECK(values[i] == i);
        CHECK(asked[i].num_replicas_in_sync == strategy.num_replicas_in_sync());
      }
    });
  }

  TEST_CASE("a value that is made for the only device may be assigned") {
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    auto weights = strategy.make_variable("w", scalar(0));
    strategy.assign(weights, strategy.experimental_distribute_values_from_function(
                               [](value_context) { return scalar(3); }));
    CHECK(numbers_of(strategy.read(weights)) == numbers{3});
  }

  TEST_CASE("devices that there are not are refused") {
    auto world = world::virtual_time();
    for (const auto* name : {"tpu:0", "cpu", "cpu:", "cpu:x", "cpu:1x", "", "cpu:-1",
                             "cpu:99999999999", "gpu", "gpu:x", "/device:gpu:"})
      CHECK(refusal_of([&] { one_device_strategy{world, name}; }) == no_device(name));
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {{"cpu:0", "tpu:0"}}};
          })
          == no_device("tpu:0"));
    CHECK(refusal_of([&] {
            central_storage_strategy{world, {.parameter_device = "disk"}};
          })
          == no_device("disk"));
  }

  TEST_CASE("variables weigh the same, or by their bytes") {
    CHECK(equal_load()(shape{1000}, dtype::f64) == 1);
    CHECK(byte_size_load()(shape{10, 3}, dtype::f32) == 120);
    CHECK(byte_size_load()(shape{}, dtype::f64) == 8);
  }

  TEST_CASE("a parameter server strategy without a function that weighs variables is refused") {
    auto made = world::virtual_time();
    CHECK(refusal_of([&] {
            parameter_server_strategy{made, {.variable_load = nullptr}};
          })
          == error{errc::invalid_argument,
                   "a parameter_server strategy was given no function that weighs variables"});
  }

  TEST_CASE("no devices, or the same one twice, are refused") {
    auto world = world::virtual_time();
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {.devices = {}}};
          })
          == error{errc::invalid_argument, "a mirrored strategy needs at least 1 replica"});
    CHECK(
      refusal_of([&] {
        mirrored_strategy{world, {{"cpu:0", "CPU:0"}}};
      })
      == error{errc::invalid_argument, "device cpu:0 is given twice; each device is one replica"});
    CHECK(refusal_of([&] {
            central_storage_strategy{world, {.compute_devices = {}}};
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("the author divides a loss that each replica sums by the global batch") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto losses = strategy.run([](replica_context&) { return array({4}, {1, 2, 3, 4}); });
      auto total = strategy.reduce(reduce_op::sum, losses, 0);
      CHECK(numbers_of(total)[0] / (4.0 * n) == 2.5); // nothing is scaled on the way
    });
  }
}

} // namespace in_process_strategies_test
