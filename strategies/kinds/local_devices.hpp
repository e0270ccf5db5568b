// SPDX-License-Identifier: Apache-2.0
// Lists the devices of this machine, for programs that name none.
#pragma once

#include "strategies/cluster/environment.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The devices that TensorFlow's strategies take if none are named: all GPUs that this process may
/// use (`visible_gpus`), else the processor. Here the program asks for them, since the number of
/// its replicas is not to change because a machine has GPUs:
///
///     mirrored_strategy strategy{world, {.devices = local_devices()}};
[[nodiscard]] std::vector<std::string> local_devices(const environment_reader& environment
                                                     = process_environment());

} // namespace troupe
