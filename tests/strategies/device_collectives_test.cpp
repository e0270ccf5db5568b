// SPDX-License-Identifier: Apache-2.0
// Goal: processes with devices reduce by them when they are to, and come to the values that they
// come to without. Method: processes played by threads, whose devices are parts of the processor.
#include "actors/gpu/cpu_collectives.hpp"
#include "actors/gpu/cpu_device.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

#include <atomic>

using namespace troupe;
using namespace troupe::test;

namespace {

/// What all processes of a test have in common.
struct played_devices {
  std::shared_ptr<cpu_collectives> library = std::make_shared<cpu_collectives>();
  std::atomic<uint64_t> uploads{0};

  /// Has each process add up, on two replicas, arrays of its replicas.
  /// @returns The sums, by process and replica.
  std::vector<std::vector<tensor>> sums(uint32_t processes, multi_worker_mirrored_options given) {
    std::vector<std::vector<tensor>> result(processes);
    auto thrown = play(processes, [&](played_worker& worker) {
      auto options = worker.options(2);
      options.communication = given.communication;
      options.fixed_order = given.fixed_order;
      auto device = std::make_shared<cpu_device>(static_cast<int>(worker.rank));
      options.device_collectives = library;
      options.collective_device = device;
      {
        multi_worker_mirrored_strategy strategy{worker.world, options};
        auto all = strategy.run([](replica_context& context) -> task<tensor> {
          auto own = static_cast<float>(context.replica_id_in_sync_group() + 1);
          auto adding = context.all_reduce(reduce_op::sum, make_tensor({2}, {own, 10 * own}));
          auto sum = co_await adding;
          co_return sum;
        });
        for (uint32_t i = 0; i < 2; ++i)
          result[worker.rank].push_back(all[i]);
      }
      uploads += device->uploads();
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    return result;
  }
};

void check_sums(const std::vector<std::vector<tensor>>& sums, float first) {
  for (const auto& of_process : sums)
    for (const auto& sum : of_process) {
      CHECK(sum.values<float>()[0] == first);
      CHECK(sum.values<float>()[1] == 10 * first);
    }
}

} // namespace

TEST_SUITE("strategies/device_collectives") {
  TEST_CASE("replicas of several processes reduce by devices if that is asked for") {
    played_devices devices;
    auto nccl = communication_implementation::nccl;
    check_sums(devices.sums(3, {.communication = {.implementation = nccl}}), 1 + 2 + 3 + 4 + 5 + 6);
    CHECK(devices.uploads == 3 * 2);
  }

  TEST_CASE("AUTO takes devices where the order of sums is free, and only there") {
    played_devices devices;
    check_sums(devices.sums(2, {}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 0);
    check_sums(devices.sums(2, {.fixed_order = false}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 2 * 2);
  }

  TEST_CASE("RING is by messages even where there are devices") {
    played_devices devices;
    auto ring = communication_implementation::ring;
    check_sums(devices.sums(2, {.communication = {.implementation = ring}}), 1 + 2 + 3 + 4);
    CHECK(devices.uploads == 0);
  }
}
