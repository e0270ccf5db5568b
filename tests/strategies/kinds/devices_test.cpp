// SPDX-License-Identifier: Apache-2.0
// Goal: replicas on devices train as others do, and a job hears of a device that is lost. Method:
// small jobs in the virtual world, on devices that are parts of the processor.
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/strategies/played_gpus.hpp"
#include "tests/strategies/small_job.hpp"

#include <set>

namespace devices_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A job with a gradient that is the variable plus a number of the replica's own, made on its
/// device.
struct device_job {
  device_job(const played_gpu_list& devices, const sync_options& sync)
    : strategy(world, {.replicas = sync.total_num_replicas, .compute_devices = as_given(devices)}),
      weights(strategy.make_variable("w", make_tensor({3}, {1, 2, 3}))),
      optimizer(rules::sgd{.learning_rate = 0.1}, sync) {}

  course run(uint64_t steps) {
    auto step = [this](replica_context& context) -> task<void> {
      auto reading = context.read(weights);
      auto value = co_await reading;
      auto key = context.random("noise");
      auto work = [value, key](std::stop_token, compute_stream& on) {
        std::vector<tensor> given{value};
        random_stream noise{key};
        auto own = make_tensor({3}, {static_cast<float>(noise.uniform()), 0, 1});
        const tensor terms[]
          = {value_or_throw(on.resident(given)).front(), value_or_throw(on.to_device(own))};
        return value_or_throw(on.to_host(value_or_throw(on.sum(terms))));
      };
      auto computing = context.compute(std::move(work));
      auto gradient = co_await computing;
      auto applying = optimizer.apply_gradients(context, gradient, weights);
      co_await applying;
    };
    training_options options{.steps = steps, .deadline = 10s};
    options.pace = [](uint32_t, uint64_t, job_time) { return 100ms; };
    return play(strategy, optimizer, step, options);
  }

  [[nodiscard]] std::vector<float> trained() {
    auto value = strategy.read(weights);
    auto values = value.values<float>();
    return {values.begin(), values.end()};
  }

  troupe::world world = world::virtual_time({.seed = 3});
  parameter_server_strategy strategy;
  variable weights;
  sync_replicas_optimizer optimizer;
};

} // namespace

TEST_SUITE("strategies/kinds/devices") {
  TEST_CASE("a job on devices comes to the bits of one without") {
    device_job plain{{}, {4, 4}};
    CHECK(plain.run(20).report.step == 20);
    for (size_t count : {1U, 2U, 4U}) {
      auto devices = make_gpus(count, 4);
      device_job job{devices, {4, 4}};
      auto seen = job.run(20);
      CHECK(seen.report.step == 20);
      CHECK(!seen.report.failure);
      CHECK(job.trained() == plain.trained());
      for (const auto& device : devices)
        CHECK(device->uploads() > 0);
    }
  }

  TEST_CASE("a variable goes to a device once for each version and stream") {
    auto devices = make_gpus(1, 2);
    device_job job{devices, {2, 2}};
    static_cast<void>(job.run(10));
    // Two streams, each with every version and a number of its own in every step that began.
    CHECK(devices[0]->uploads() <= 2 * 2 * 11);
    CHECK(devices[0]->uploads() >= 2 * 2 * 10);
  }

  TEST_CASE("replicas get devices in turn, and keep theirs") {
    auto world = world::virtual_time();
    auto devices = make_gpus(2, 2);
    replica_devices given{world, as_given(devices), 1s};
    std::set<std::pair<uint64_t, uint32_t>> taken;
    for (uint32_t replica : {7U, 1U, 4U, 0U}) {
      auto place = given.processor_of(replica);
      REQUIRE(place);
      taken.emplace(place->device.id(), place->stream);
    }
    CHECK(taken.size() == 4);
    CHECK(given.processor_of(7)->device == given.processor_of(4)->device);
    CHECK(given.processor_of(7)->device != given.processor_of(1)->device);
    CHECK(given.processor_of(7)->stream == 0);
  }

  TEST_CASE("as many in a row as asked for have the same stream") {
    auto world = world::virtual_time();
    replica_devices given{world, as_given(make_gpus(1, 2)), 1s, "gpu", 3};
    std::vector<uint32_t> streams;
    for (uint32_t owner = 0; owner < 8; ++owner)
      streams.push_back(given.processor_of(owner)->stream);
    CHECK(streams == std::vector<uint32_t>{0, 0, 0, 1, 1, 1, 0, 0});
  }

  TEST_CASE("replicas without devices compute on the world's threads") {
    auto world = world::virtual_time();
    replica_devices none{world, {}, 1s};
    CHECK(!none.processor_of(0));
    CHECK(none.count() == 0);
  }

  TEST_CASE("a job that has backups goes on without the replicas of a device that is lost") {
    auto devices = make_gpus(3, 1);
    device_job job{devices, {.replicas_to_aggregate = 2, .total_num_replicas = 3}};
    devices[1]->lose({errc::unavailable, "CUDA error 700"});
    auto seen = job.run(10);
    CHECK(seen.report.step == 10);
    CHECK(!seen.report.failure);
    REQUIRE(!seen.warnings.empty());
    CHECK(seen.warnings.front().find("cpu:1 is lost: CUDA error 700") != std::string::npos);
  }

  TEST_CASE("a job that needs a device that is lost ends, and says which") {
    auto devices = make_gpus(2, 1);
    device_job job{devices, {2, 2, sync_policy::latest_token}};
    devices[1]->lose({errc::unavailable, "CUDA error 700"});
    auto seen = job.run(10);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message.find("cpu:1 is lost: CUDA error 700") != std::string::npos);
  }

  TEST_CASE("replicas of a run compute on devices, and reduce what comes of it") {
    auto world = world::virtual_time();
    auto devices = make_gpus(2, 1);
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(2), .compute_devices = as_given(devices)}};
    auto sums = strategy.run([](replica_context& context) -> task<tensor> {
      auto own = make_tensor({1}, {static_cast<float>(context.replica_id_in_sync_group() + 1)});
      auto work = [own](std::stop_token, compute_stream& on) {
        auto there = value_or_throw(on.to_device(own));
        const tensor twice[] = {there, there};
        return value_or_throw(on.to_host(value_or_throw(on.sum(twice))));
      };
      auto computing = context.compute(std::move(work));
      auto doubled = co_await computing;
      auto reducing = context.all_reduce(reduce_op::sum, doubled);
      auto sum = co_await reducing;
      co_return sum;
    });
    CHECK(sums[1].values<float>()[0] == 2 * (1 + 2));
    for (const auto& device : devices)
      CHECK(device->uploads() == 1);
  }

  TEST_CASE("replicas are on logical devices of their own, however many GPUs there are") {
    auto world = world::virtual_time();
    parameter_server_strategy on_devices{
      world, {.replicas = 3, .compute_devices = as_given(make_gpus(1, 3))}};
    CHECK(on_devices.layout().worker_devices
          == std::vector<std::string>{"gpu:0", "gpu:1", "gpu:2"});
  }
}

} // namespace devices_test
