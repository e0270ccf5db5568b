// SPDX-License-Identifier: Apache-2.0
// The devices of this machine, for whoever names none.
#pragma once

#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// What the original's strategies take where nobody names devices: all GPUs that this process may
/// use (`visible_gpus`), else the processor. Here somebody says so, since a program that ran on one
/// processor is not to have other replicas because a machine has GPUs:
///
///     mirrored_strategy strategy{world, {.devices = local_devices()}};
[[nodiscard]] std::vector<std::string> local_devices(const environment_reader& environment
                                                     = process_environment());

} // namespace troupe
