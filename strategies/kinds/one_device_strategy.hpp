// SPDX-License-Identifier: Apache-2.0
// Everything on one device.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <string>

namespace troupe {

/// One replica, on one device, with all variables: to try out what is to run on many.
class one_device_strategy final : public strategy {
public:
  /// @param device A GPU, "gpu:0", is what the replica computes on; variables lie in the host's
  /// memory. @param gpus Where that comes from.
  /// Errors: as `mirrored_strategy`.
  explicit one_device_strategy(troupe::world& world, std::string device = "cpu:0",
                               const gpu_source& gpus = {});
};

} // namespace troupe
