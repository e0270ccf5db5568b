// SPDX-License-Identifier: Apache-2.0
// The devices of one process, and which of its replicas or owners uses which.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/world/activity.hpp"
#include "actors/world/world.hpp"
#include "kernels/tensor/buffer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe {

class compute_device;

/// Owns gpu actors of a strategy. Replicas get devices, and the streams of a device, in turn, in
/// the order in which they come to this process; a replica that comes back gets its own again. A
/// second object does the same for the owners of variables: each stream gets some owners in a row,
/// so that a few variables are one bundle, and not one on each stream.
///
/// Thread: any.
class replica_devices {
public:
  /// @param devices None: replicas compute on the world's threads. @param deadline The time of one
  /// piece of work. @param actors The name of its actors, without the number: "gpu". @param row How
  /// many in a row get the same stream of a device.
  replica_devices(world& world, std::vector<std::shared_ptr<compute_device>> devices,
                  job_time deadline, std::string_view actors = "gpu", uint32_t row = 1);

  /// @pre No replica computes any more.
  ~replica_devices();

  replica_devices(const replica_devices&) = delete;
  replica_devices& operator=(const replica_devices&) = delete;

  /// The processor of a replica, or of the owner of that index; nothing: the world's threads.
  [[nodiscard]] std::optional<processor> processor_of(uint32_t replica);

  /// The owner of that index on every device, on a stream of the same number on each.
  [[nodiscard]] std::vector<processor> processors_of(uint32_t owner);

  /// The first stream of a device of the strategy, for requests that come from no replica; nothing,
  /// if the strategy has no such device.
  [[nodiscard]] std::optional<processor> at(device where) const;

  /// The first of its devices that is a GPU.
  [[nodiscard]] std::optional<device> any_gpu() const;

  [[nodiscard]] size_t count() const { return actors_.size(); }

private:
  [[nodiscard]] uint32_t turn_of(uint32_t replica);

  std::vector<std::shared_ptr<compute_device>> devices_;
  std::vector<gpu_actor> actors_;
  uint32_t row_;
  std::mutex turns_mutex_;
  std::map<uint32_t, uint32_t> turns_; ///< By replica: its number in the order of arrival.
};

} // namespace troupe
