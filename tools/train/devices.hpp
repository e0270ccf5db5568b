// SPDX-License-Identifier: Apache-2.0
// The GPUs of a process of `troupe train`.
#pragma once

#include "messages/errc.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "tools/train/train_options.hpp"

#include <memory>
#include <vector>

namespace troupe {

class collective_library;
class compute_device;

/// What a process computes and reduces on, where that is not its processor.
struct train_devices {
  std::vector<std::shared_ptr<compute_device>> computing{}; ///< Replicas take them in turn.
  std::shared_ptr<collective_library> collectives{};        ///< For --communication nccl.
  std::shared_ptr<compute_device> reducing{};               ///< For nccl, too: the first GPU.
};

/// Opens the devices that the options name, if there are replicas in this process to use them.
/// Errors: as `open_devices` and `open_nccl`, after the option that asks for it.
[[nodiscard]] expected<train_devices> find_devices(const train_options& options,
                                                   const resolved_cluster& cluster);

} // namespace troupe
