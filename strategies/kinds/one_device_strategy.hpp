// SPDX-License-Identifier: Apache-2.0
// A strategy with one replica and all variables on one device.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// One replica, on one device, with all variables: to try out what is to run on many.
class one_device_strategy final : public strategy {
public:
  /// @param device "cpu:0"; or a GPU, "gpu:0", which the replica computes on then. @param gpus
  /// Where the GPU comes from. @param variable_devices As
  /// `parameter_server_options::variable_devices`; empty: on `device`, if it is a GPU.
  /// Errors: as `mirrored_strategy`; as `check_layout`.
  explicit one_device_strategy(troupe::world& world, std::string device = "cpu:0",
                               const gpu_source& gpus = {},
                               std::vector<std::shared_ptr<compute_device>> variable_devices = {});
};

} // namespace troupe
