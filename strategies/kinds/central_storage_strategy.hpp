// SPDX-License-Identifier: Apache-2.0
// A strategy with a replica on each device, and all variables in one place.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// How a central storage strategy is laid out.
struct central_storage_options {
  std::vector<std::string> compute_devices = {"cpu:0"}; ///< As `mirrored_options::devices`.
  /// Where variables live. None: on the compute device if there is one, else on cpu:0.
  std::optional<std::string> parameter_device;
  job_time deadline = std::chrono::minutes{10}; ///< The time that a run may take.
  gpu_source gpus{};                            ///< As `mirrored_options::gpus`.
  /// As `parameter_server_options::variable_devices`. Empty: on `parameter_device`, if it is a GPU.
  std::vector<std::shared_ptr<compute_device>> variable_devices{};
};

/// Replicas run as under a mirrored strategy, but all share each variable: a replica that writes
/// one needs an aggregation. How a variable is synchronised makes no difference.
class central_storage_strategy final : public strategy {
public:
  /// Errors: as `mirrored_strategy`.
  explicit central_storage_strategy(troupe::world& world, central_storage_options options = {});
};

} // namespace troupe
