// SPDX-License-Identifier: Apache-2.0
// The processes of a multi worker strategy, each played by a thread with a world of its own.
#pragma once

#include "actors/net/cluster_placement.hpp"
#include "actors/world/world.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "tests/strategies/played_network.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::test {

/// One of the processes, as its program sees it.
struct played_worker {
  uint32_t rank;
  troupe::world& world;
  cluster_placement& placement;
  std::vector<std::string> names; ///< Names of all processes.
  played_network& network;

  /// The options of a strategy with so many local replicas.
  [[nodiscard]] multi_worker_mirrored_options options(uint32_t replicas) const {
    return {.devices = cpu_devices(replicas), .placement = &placement, .workers = names};
  }
};

/// How processes are played.
struct play_options {
  bool has_sockets = false;
  bool has_chief = false;
  job_time start_deadline = std::chrono::seconds{20};
};

/// Runs `program` in each of so many processes, and waits for their ends.
/// @returns By rank, what the program threw.
inline std::vector<error> play(uint32_t processes,
                               const std::function<void(played_worker&)>& program,
                               const play_options& options = {}) {
  cluster_layout layout{.has_chief = options.has_chief,
                        .workers = processes - (options.has_chief ? 1 : 0),
                        .workers_meet = true};
  played_network network{layout, options.has_sockets};
  std::vector<error> thrown(processes);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < processes; ++rank)
    threads.emplace_back([&, rank] {
      try {
        auto world = world::threads({.seed = 5, .threads = 2});
        auto membership = network.join(world.system(), rank);
        cluster_placement placement{layout, *membership, options.start_deadline};
        played_worker worker{rank, world, placement, node_names(layout), network};
        program(worker);
      } catch (const failure& failed) {
        thrown[rank] = failed.reason();
      }
    });
  for (auto& thread : threads)
    thread.join();
  return thrown;
}

} // namespace troupe::test
