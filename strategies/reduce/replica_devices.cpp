// SPDX-License-Identifier: Apache-2.0
// Devices in turn.
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

std::optional<processor> replica_devices::processor_of(uint32_t replica) {
  if (actors_.empty()) return std::nullopt;
  std::lock_guard guard{turns_mutex_};
  auto turn = turns_.emplace(replica, static_cast<uint32_t>(turns_.size())).first->second;
  auto device = turn % actors_.size();
  auto on_device = static_cast<uint32_t>(turn / actors_.size());
  auto stream = on_device / row_ % devices_[device]->stream_count();
  return processor{actors_[device], stream, devices_[device]};
}

std::optional<processor> replica_devices::at(device where) const {
  for (size_t i = 0; i < devices_.size(); ++i)
    if (devices_[i]->where() == where) return processor{actors_[i], 0, devices_[i]};
  return std::nullopt;
}

std::optional<device> replica_devices::any_gpu() const {
  for (const auto& one : devices_)
    if (one->where().kind != device_kind::cpu) return one->where();
  return std::nullopt;
}

} // namespace troupe
