// SPDX-License-Identifier: Apache-2.0
// Replicas that leave their arrays on GPUs, played by parts of the processor.
#pragma once

#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/played_gpus.hpp"
#include "tests/strategies/refusal.hpp"

#include <utility>
#include <vector>

namespace troupe::test {

/// So many devices, which say that they are GPUs.
[[nodiscard]] inline played_gpu_list make_playing_gpus(size_t count, uint32_t streams,
                                                       size_t bytes_max = size_t{1} << 30) {
  played_gpu_list made;
  for (size_t i = 0; i < count; ++i)
    made.push_back(std::make_shared<cpu_device>(
      static_cast<int>(i),
      cpu_device_options{.streams = streams, .plays_gpu = true, .bytes_max = bytes_max}));
  return made;
}

/// The results of replicas, copied to the host's memory, and the devices that they were on.
struct results_of_replicas {
  std::vector<tensor> values;
  std::vector<device> places;
};

/// A mirrored strategy with replicas that share some GPUs, in turn.
struct leaving_replicas {
  leaving_replicas(size_t gpu_count, uint32_t replicas, size_t bytes_max = size_t{1} << 30)
    : gpus(make_playing_gpus(gpu_count, replicas, bytes_max)),
      strategy(world, {.devices = cpu_devices(replicas),
                       .compute_devices = as_given(gpus),
                       .gpus = source.source()}) {}

  [[nodiscard]] device place_of(uint32_t replica) const {
    return gpus[replica % gpus.size()]->where();
  }

  /// Copies the values to the devices of their replicas.
  [[nodiscard]] distributed_value<tensor> distributed(const std::vector<tensor>& given) {
    return strategy.run([&](replica_context& context) -> task<tensor> {
      auto copying = leave(context, given[context.replica_id_in_sync_group()]);
      auto there = co_await copying;
      co_return there;
    });
  }

  /// Calls `use(context, there)` for each replica, with its value on its device.
  template <class Use>
  [[nodiscard]] results_of_replicas left(const std::vector<tensor>& given, Use use) {
    auto results = strategy.run([&](replica_context& context) -> task<std::pair<tensor, device>> {
      auto copying = leave(context, given[context.replica_id_in_sync_group()]);
      auto there = co_await copying;
      auto using_it = use(context, there);
      auto result = co_await using_it;
      auto where = result.device();
      auto bringing = context.bring_to_host({&result});
      co_await bringing;
      co_return std::pair{result, where};
    });
    results_of_replicas seen;
    for (size_t i = 0; i < given.size(); ++i) {
      seen.values.push_back(results.first.select(i));
      seen.places.push_back(results.second.select(i));
    }
    return seen;
  }

  [[nodiscard]] tensor on_host(tensor value) {
    return strategy.cross_replica([value](cross_replica_context& context) mutable -> task<tensor> {
      auto here = value;
      auto bringing = context.bring_to_host({&here});
      co_await bringing;
      co_return here;
    });
  }

  static task<tensor> leave(replica_context& context, tensor value) {
    auto work = [value](std::stop_token, compute_stream& on) {
      return value_or_throw(on.to_device(value));
    };
    auto computing = context.compute(std::move(work));
    auto there = co_await computing;
    co_return there;
  }

  played_gpus source{2, false}; ///< The GPUs that reductions open.
  troupe::world world = world::virtual_time({.seed = 3});
  played_gpu_list gpus;
  mirrored_strategy strategy;
};

} // namespace troupe::test
