// SPDX-License-Identifier: Apache-2.0
// The GPUs of a process of a job.
#pragma once

#include "messages/errc.hpp"
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
  std::shared_ptr<compute_device> reducing{};               ///< For nccl, too: the first GPU.
};

/// Opens the devices that the options name, if this process has a use for them. If the options name
/// none for variables, these lie beside the replicas that compute: in a job of one process, and in
/// a process that has all variables and computes on one GPU.
/// Errors: as `open_devices` and `open_nccl`, after the option that asks for it.
[[nodiscard]] expected<job_devices> find_devices(const job_options& options,
                                                 const resolved_cluster& cluster);

} // namespace troupe
