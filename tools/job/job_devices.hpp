// SPDX-License-Identifier: Apache-2.0
// Opens the GPUs of a job's process.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "tools/options/job_options.hpp"

#include <memory>
#include <vector>

namespace troupe {

class collective_library;
class compute_device;

/// Devices on which a process computes, reduces and holds variables, beside its processor.
struct job_devices {
  std::vector<std::shared_ptr<compute_device>> computing{}; ///< Replicas take them in turn.
  std::vector<std::shared_ptr<compute_device>> holding{};   ///< Variables take them in turn.
  std::shared_ptr<collective_library> collectives{};        ///< For --communication nccl.
  std::shared_ptr<compute_device> reducing{};               ///< The first GPU, for nccl, too.
};

/// Opens the devices that the options name, if this process needs them. If the options name none
/// for variables, the variables lie on the GPUs of the replicas if no other process reads them.
/// Errors: as `open_devices` and `open_nccl`, after the option that asks for it.
[[nodiscard]] expected<job_devices> find_devices(const job_options& options,
                                                 const resolved_cluster& cluster);

} // namespace troupe
