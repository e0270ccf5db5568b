// SPDX-License-Identifier: Apache-2.0
// The devices of this machine, for programs that name none.
#pragma once

#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The devices that the original's strategies take if none are named: all GPUs that this process
/// may use (`visible_gpus`), else the processor. Here the program says so, since one that ran on
/// one processor is not to have other replicas because a machine has GPUs:
///
///     mirrored_strategy strategy{world, {.devices = local_devices()}};
[[nodiscard]] std::vector<std::string> local_devices(const environment_reader& environment
                                                     = process_environment());

} // namespace troupe
