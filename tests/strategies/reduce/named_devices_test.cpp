// SPDX-License-Identifier: Apache-2.0
// Goal: strategies and reductions are on the GPUs that they are given by name. Method: GPUs that
// are parts of the processor, as many as a test says, with collectives or without.
#include "strategies/kinds/local_devices.hpp"
#include "strategies/kinds/one_device_strategy.hpp"
#include "strategies/reduce/cross_device_choice.hpp"
#include "strategies/reduce/hierarchical_copy_all_reduce.hpp"
#include "tests/actors/collective/collective_group.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/played_gpus.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

namespace named_devices_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using names = std::vector<std::string>;

/// On which GPU each replica computes, as they say it themselves.
std::vector<int> places_of(strategy& strategy) {
  auto seen = strategy.run([](replica_context& context) -> task<tensor> {
    auto work = [](std::stop_token, compute_stream& on) {
      return make_tensor({1}, {static_cast<float>(on.where().index)});
    };
    auto computing = context.compute(std::move(work));
    auto where = co_await computing;
    co_return where;
  });
  std::vector<int> places;
  for (const auto& where : seen.local_results())
    places.push_back(static_cast<int>(where.values<float>()[0]));
  return places;
}

// Values with sums that depend on the order of additions.
std::vector<tensor> samples(uint32_t count) {
  std::vector<tensor> values;
  for (uint32_t i = 0; i < count; ++i)
    values.push_back(sample(dtype::f32, {1003}, i));
  return values;
}

tensor reduce(const cross_device_ops& ops, reduce_op op, const std::vector<tensor>& values) {
  device_values value{{values.begin(), values.end()},
                      cpu_devices(static_cast<uint32_t>(values.size()))};
  return std::get<tensor>(ops.reduce(op, value, destinations{value.devices}));
}

error no_gpu(const std::string& names) {
  return {errc::not_found, names + ": there is no gpu:2 here: the last one is gpu:1"};
}

} // namespace

TEST_SUITE("strategies/reduce/named_devices") {
  TEST_CASE("replicas compute on the GPUs that a strategy names, in their order") {
    auto world = world::virtual_time();
    played_gpus gpus{3};
    one_device_strategy single{world, "/device:GPU:2", gpus.source()};
    CHECK(places_of(single) == std::vector{2});
    CHECK(single.layout().parameter_devices == names{"gpu:2"});
    mirrored_strategy mirrored{world, {.devices = {"gpu:1", "GPU:0"}, .gpus = gpus.source()}};
    CHECK(places_of(mirrored) == std::vector{1, 0});
    CHECK(mirrored.layout().worker_devices == names{"gpu:1", "gpu:0"});
    central_storage_strategy central{
      world, {.compute_devices = {"gpu:0", "gpu:2"}, .gpus = gpus.source()}};
    CHECK(places_of(central) == std::vector{0, 2});
    CHECK(central.layout().parameter_devices == names{"cpu:0"});
    multi_worker_mirrored_strategy worker{world, {.devices = {"gpu:2"}, .gpus = gpus.source()}};
    CHECK(places_of(worker) == std::vector{2});
  }

  TEST_CASE("a GPU that is not there is refused in one line, by every strategy") {
    auto world = world::virtual_time();
    played_gpus gpus{2};
    CHECK(refusal_of([&] { one_device_strategy(world, "gpu:2", gpus.source()); })
          == no_gpu("gpu:2"));
    const names devices{"gpu:0", "gpu:2"};
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {.devices = devices, .gpus = gpus.source()}};
          })
          == no_gpu("gpu:0, gpu:2"));
    CHECK(refusal_of([&] {
            central_storage_strategy{world, {.compute_devices = devices, .gpus = gpus.source()}};
          })
          == no_gpu("gpu:0, gpu:2"));
    CHECK(refusal_of([&] {
            multi_worker_mirrored_strategy{world, {.devices = devices, .gpus = gpus.source()}};
          })
          == no_gpu("gpu:0, gpu:2"));
  }

  TEST_CASE("GPUs of this machine are looked for if nothing else is said") {
    auto world = world::virtual_time();
    auto refused = refusal_of([&] {
      mirrored_strategy{world, {.devices = {"gpu:1000", "gpu:1001"}}};
    });
    CHECK(refused.message.find("gpu:1000, gpu:1001: ") == 0);
    CHECK(refused.message.find('\n') == std::string::npos);
  }

  TEST_CASE("the devices of this machine are all of its GPUs, else the processor") {
    auto seen = [](const char* gpus) {
      return local_devices(fixed_environment({{"CUDA_VISIBLE_DEVICES", gpus}}));
    };
    CHECK(seen("") == names{"cpu:0"});
    CHECK(seen("0") == names{"gpu:0"});
    CHECK(seen("4,7") == names{"gpu:0", "gpu:1"}); // CUDA counts those that can be seen
    auto world = world::virtual_time();
    played_gpus gpus{2};
    mirrored_strategy strategy{world, {.devices = seen("4,7"), .gpus = gpus.source()}};
    CHECK(places_of(strategy) == std::vector{0, 1});
    mirrored_strategy alone{world, {.devices = seen("")}};
    CHECK(alone.num_replicas_in_sync() == 1);
  }

  TEST_CASE("processors beside GPUs, and GPUs beside other devices to compute on, are refused") {
    auto world = world::virtual_time();
    played_gpus gpus{2};
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {.devices = {"gpu:0", "cpu:0"}, .gpus = gpus.source()}};
          })
          == error{errc::invalid_argument,
                   "gpu:0, cpu:0 are processors and GPUs; give devices of one kind"});
    CHECK(refusal_of([&] {
            mirrored_strategy{world,
                              {.devices = {"gpu:0"},
                               .compute_devices = {std::make_shared<cpu_device>(0)},
                               .gpus = gpus.source()}};
          })
          == error{errc::invalid_argument, "a mirrored strategy was given GPUs by name, and "
                                           "compute_devices, too; give one of them"});
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {.devices = {"gpu:0", "GPU:0"}, .gpus = gpus.source()}};
          }).message
          == "device gpu:0 is given twice; each device is one replica");
    CHECK(gpus.opened.empty());
  }

  TEST_CASE("several GPUs reduce by NCCL where it is, and one device adds otherwise") {
    auto world = world::virtual_time();
    played_gpus gpus{2}, bare{2, false};
    auto chosen = [&](const names& devices, played_gpus& of) {
      mirrored_strategy strategy{world, {.devices = devices, .gpus = of.source()}};
      return std::string{strategy.cross_device_operations().name()};
    };
    CHECK(chosen({"gpu:0", "gpu:1"}, gpus) == "nccl_all_reduce");
    CHECK(chosen({"gpu:0", "gpu:1"}, bare) == "reduction_to_one_device");
    CHECK(chosen({"gpu:0"}, gpus) == "reduction_to_one_device");
    CHECK(chosen({"cpu:0", "cpu:1"}, gpus) == "reduction_to_one_device");
  }

  TEST_CASE("replicas on GPUs reduce what they computed there") {
    auto world = world::virtual_time();
    played_gpus gpus{2};
    mirrored_strategy strategy{world, {.devices = {"gpu:0", "gpu:1"}, .gpus = gpus.source()}};
    auto sums = strategy.run([](replica_context& context) -> task<tensor> {
      auto own = make_tensor({1}, {static_cast<float>(context.replica_id_in_sync_group() + 1)});
      auto reducing = context.all_reduce(reduce_op::sum, own);
      auto sum = co_await reducing;
      co_return sum;
    });
    CHECK(sums[1].values<float>()[0] == 1 + 2);
  }

  TEST_CASE("operations on GPUs are made by name") {
    played_gpus gpus{4};
    for (const auto* name : {"nccl", "NCCL_all_reduce"})
      CHECK(make_cross_device_ops(name, {"gpu:0", "gpu:1"}, gpus.source())->name()
            == "nccl_all_reduce");
    CHECK(refusal_of([] { static_cast<void>(make_cross_device_ops("nccl")); })
          == error{errc::invalid_argument, "nccl_all_reduce is for GPUs; name those of the "
                                           "strategy, as in gpu:0, gpu:1"});
    CHECK(refusal_of([&] {
            static_cast<void>(make_cross_device_ops("nccl", {"gpu:0", "cpu:0"}, gpus.source()));
          }).code
          == errc::invalid_argument);
    played_gpus bare{2, false};
    CHECK(refusal_of([&] {
            static_cast<void>(make_cross_device_ops("nccl", {"gpu:0", "gpu:1"}, bare.source()));
          })
          == error{errc::resource, "NCCL cannot be loaded"});
  }

  TEST_CASE("two levels over GPUs have the bits of two levels over processors") {
    for (uint32_t devices : {2U, 4U}) {
      played_gpus gpus{4};
      auto over_gpus = make_cross_device_ops(
        "hierarchical_copy_all_reduce",
        devices == 2 ? names{"gpu:0", "gpu:1"} : names{"gpu:0", "gpu:1", "gpu:2", "gpu:3"},
        gpus.source());
      auto values = samples(devices);
      for (auto op : {reduce_op::sum, reduce_op::mean})
        CHECK(is_same(reduce(*over_gpus, op, values),
                      reduce(hierarchical_copy_all_reduce{}, op, values)));
      REQUIRE(gpus.opened.size() == devices);
      for (const auto& device : gpus.opened)
        CHECK(device->uploads() >= 2);
      auto more = reduce(*over_gpus, reduce_op::sum, samples(2 * devices)); // two on each
      CHECK(more.element_count() == 1003);
    }
  }

  TEST_CASE("two levels need an even number of GPUs, and as many values at least") {
    played_gpus gpus{3};
    auto refused = refusal_of([&] {
      static_cast<void>(make_cross_device_ops("hierarchical_copy_all_reduce",
                                              {"gpu:0", "gpu:1", "gpu:2"}, gpus.source()));
    });
    CHECK(refused.message.find("an even number of devices, not 3") != std::string::npos);
    hierarchical_copy_all_reduce four{as_given(make_gpus(4))};
    CHECK(refusal_of([&] {
            static_cast<void>(reduce(four, reduce_op::sum, samples(2)));
          }).message.find("made for 4 devices, and 2 values")
          != std::string::npos);
  }

  TEST_CASE("a GPU of two levels that is lost, or does not come, is named") {
    auto lost = make_gpus(2), late = make_gpus(2);
    lost[1]->lose({errc::unavailable, "CUDA error 700"});
    hierarchical_copy_all_reduce over_lost{as_given(lost)};
    auto refused
      = refusal_of([&] { static_cast<void>(reduce(over_lost, reduce_op::sum, samples(2))); });
    CHECK(refused.code == errc::unavailable);
    CHECK(refused.message.find("CUDA error 700") != std::string::npos);
    late[1]->stream(0).hold([](std::function<void()>) {});
    hierarchical_copy_all_reduce over_late{as_given(late), 1, 50ms};
    auto waited
      = refusal_of([&] { static_cast<void>(reduce(over_late, reduce_op::sum, samples(2))); });
    CHECK(waited.code == errc::deadline_exceeded);
    CHECK(waited.message.find("cpu:1 has not done a reduction") == 0);
  }

  TEST_CASE("processes whose devices are GPUs reduce by NCCL if that is asked for, or is free") {
    auto nccl = communication_implementation::nccl,
         automatic = communication_implementation::automatic;
    auto ring = communication_implementation::ring;

    struct {
      communication_implementation implementation;
      bool fixed_order, has_nccl, by_devices;
    } const cases[] = {{nccl, true, true, true},
                       {automatic, false, true, true},
                       {automatic, true, true, false},
                       {automatic, false, false, false},
                       {ring, false, true, false}};

    for (const auto& one : cases) {
      played_gpus gpus{1, one.has_nccl};
      auto thrown = play(2, [&](played_worker& worker) {
        auto options = worker.options(1);
        options.devices = {"gpu:0"};
        options.communication.implementation = one.implementation;
        options.fixed_order = one.fixed_order;
        options.gpus = gpus.source();
        multi_worker_mirrored_strategy strategy{worker.world, options};
        auto sums = strategy.run([](replica_context& context) -> task<tensor> {
          auto own = static_cast<float>(context.replica_id_in_sync_group() + 1);
          auto adding = context.all_reduce(reduce_op::sum, make_tensor({2}, {own, own}));
          auto sum = co_await adding;
          co_return sum;
        });
        CHECK(sums[0].values<float>()[0] == 1 + 2);
      });
      for (const auto& why : thrown)
        CHECK_MESSAGE(why.code == errc::none, why.message);
      CHECK((gpus.uploads() > 0) == one.by_devices);
    }
  }

  TEST_CASE("a process that asks for NCCL and has none, or no GPU, is refused") {
    auto world = world::virtual_time();
    played_gpus bare{1, false};
    multi_worker_mirrored_options options{.devices = {"gpu:0"},
                                          .communication
                                          = {.implementation = communication_implementation::nccl},
                                          .gpus = bare.source()};
    CHECK(refusal_of([&] { multi_worker_mirrored_strategy(world, options); })
          == error{errc::resource, "NCCL cannot be loaded"});
    options.devices = {"cpu:0"};
    CHECK(refusal_of([&] { multi_worker_mirrored_strategy(world, options); }).code
          == errc::unimplemented);
  }
}

} // namespace named_devices_test
