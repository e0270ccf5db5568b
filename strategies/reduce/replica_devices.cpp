// SPDX-License-Identifier: Apache-2.0
// Spawns the actors of devices, and gives devices and streams to replicas in turn.
#include "strategies/reduce/replica_devices.hpp"

#include "actors/gpu/gpu.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>
#include <utility>

namespace troupe {

replica_devices::replica_devices(world& world, std::vector<std::shared_ptr<compute_device>> devices,
                                 job_time deadline, std::string_view actors, uint32_t row)
  : devices_(std::move(devices)), row_(row) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    actors_.push_back(world.system().spawn(gpu, gpu_config{devices_[i], deadline, &world}));
    world.introduce(actors_.back().id(), fmt::format("{} {}", actors, i));
  }
}

replica_devices::~replica_devices() {
  for (const auto& actor : actors_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

uint32_t replica_devices::turn_of(uint32_t replica) {
  std::lock_guard guard{turns_mutex_};
  return turns_.emplace(replica, static_cast<uint32_t>(turns_.size())).first->second;
}

std::optional<processor> replica_devices::processor_of(uint32_t replica) {
  if (actors_.empty()) return std::nullopt;
  auto turn = turn_of(replica);
  auto device = turn % actors_.size();
  auto on_device = static_cast<uint32_t>(turn / actors_.size());
  auto stream = on_device / row_ % devices_[device]->stream_count();
  return processor{actors_[device], stream, devices_[device]};
}

std::vector<processor> replica_devices::processors_of(uint32_t owner) {
  std::vector<processor> all;
  if (actors_.empty()) return all;
  auto streams = std::ranges::min(devices_, {}, &compute_device::stream_count)->stream_count();
  auto stream = turn_of(owner) / row_ % streams;
  for (size_t i = 0; i < devices_.size(); ++i)
    all.push_back({actors_[i], stream, devices_[i]});
  return all;
}

std::optional<processor> replica_devices::at(device where) const {
  for (size_t i = 0; i < devices_.size(); ++i)
    if (devices_[i]->where() == where) return processor{actors_[i], 0, devices_[i]};
  return std::nullopt;
}

std::optional<device> replica_devices::any_gpu() const {
  for (const auto& device : devices_)
    if (device->where().kind != device_kind::cpu) return device->where();
  return std::nullopt;
}

} // namespace troupe
