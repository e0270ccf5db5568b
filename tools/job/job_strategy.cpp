// SPDX-License-Identifier: Apache-2.0
// Turns the options of a job into those of its strategy.
#include "tools/job/job_strategy.hpp"

#include "actors/recording/seconds.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"

#include <cstdint>

namespace troupe {

std::unique_ptr<strategy> make_strategy(world& world, server& server, const job_options& options,
                                        const job_devices& devices) {
  auto deadline = to_job_time(options.deadline_seconds);
  auto trainers = server.trainers();
  auto replica_devices = cpu_devices(static_cast<uint32_t>(server.replicas() / trainers.size()));
  if (options.strategy == strategy_kind::mirrored)
    return std::make_unique<mirrored_strategy>(
      world, mirrored_options{.devices = replica_devices,
                              .deadline = deadline,
                              .compute_devices = devices.computing,
                              .variable_devices = devices.holding});
  if (options.strategy == strategy_kind::multi_worker_mirrored)
    return std::make_unique<multi_worker_mirrored_strategy>(
      world,
      multi_worker_mirrored_options{.devices = replica_devices,
                                    .placement = server.placement(),
                                    .workers = trainers,
                                    .communication = {.implementation = options.communication},
                                    .compute_devices = devices.computing,
                                    .device_collectives = devices.collectives,
                                    .collective_device = devices.reducing,
                                    .deadline = deadline,
                                    .variable_devices = devices.holding});
  return std::make_unique<parameter_server_strategy>(
    world,
    parameter_server_options{.replicas = server.replicas(),
                             .placement = server.placement(),
                             .replicate_owners = static_cast<uint32_t>(options.replicate_owners),
                             .compute_devices = devices.computing,
                             .variable_devices = devices.holding,
                             .device_deadline = deadline});
}

} // namespace troupe
