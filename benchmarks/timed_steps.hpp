// SPDX-License-Identifier: Apache-2.0
// Times the steps of replicas that meet in each step, in one or several processes.
#pragma once

#include "benchmarks/stopwatch.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/training_session.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace troupe {

/// Makes the variables, and the step of a replica that has this many examples.
using step_maker = std::function<step_function(strategy&, int64_t examples)>;

inline void take_part(uint32_t replicas, int64_t examples, int steps, const step_maker& make) {
  auto world = world::threads();
  server server{
    world, resolve({}, process_environment()), {.workers_meet = true, .insecure_network = true}};
  multi_worker_mirrored_strategy strategy{world,
                                          {.devices = cpu_devices(replicas),
                                           .placement = server.placement(),
                                           .workers = server.trainers()}};
  auto step = make(strategy, examples);
  strategy.run([=](replica_context& context) -> task<void> {
    for (int i = 0; i < steps; ++i) {
      auto begin = clock_type::now();
      auto stepping = step(context);
      co_await stepping;
      if (context.replica_id_in_sync_group() == 0) std::printf("%.9f\n", seconds_since(begin));
    }
  });
}

/// The main function of a program with the arguments REPLICAS (of each process) EXAMPLES STEPS. The
/// first process prints the seconds of each step.
inline int time_steps(int count, char** arguments, const step_maker& make) {
  if (count < 4) return EXIT_FAILURE;
  try {
    take_part(static_cast<uint32_t>(std::atoi(arguments[1])), std::atoll(arguments[2]),
              std::atoi(arguments[3]), make);
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

} // namespace troupe
