// SPDX-License-Identifier: Apache-2.0
// A strategy with a replica on each device, and a copy of every variable beside it.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <string>
#include <vector>

namespace troupe {

/// How a mirrored strategy is laid out.
struct mirrored_options {
  /// One replica on each: "cpu:0", "cpu:1"; or GPUs, which replicas compute on then: "gpu:0",
  /// "gpu:1".
  std::vector<std::string> devices = {"cpu:0"};
  std::shared_ptr<const cross_device_ops> cross_device_operations; ///< Null: chosen by `devices`.
  job_time deadline = std::chrono::minutes{10};                    ///< The time for a run.
  /// The devices that replicas compute on, in turn, if `devices` are processors; empty: the world's
  /// computing threads.
  std::vector<std::shared_ptr<compute_device>> compute_devices{};
  gpu_source gpus{}; ///< Where GPUs among `devices` come from.
  /// The devices that variables lie on and are updated on, with a copy on each; as
  /// `parameter_server_options::variable_devices`. Empty: the GPUs among `devices`, else the host's
  /// memory. Variables that are synchronised on read always lie in the host's memory.
  std::vector<std::shared_ptr<compute_device>> variable_devices{};
};

/// `count` devices of the host's processor: "cpu:0", "cpu:1" and so on.
[[nodiscard]] std::vector<std::string> cpu_devices(uint32_t count);

/// A replica and a copy of every variable on each device.
/// Errors: throws `failure` with invalid_argument for a device that is none.
[[nodiscard]] strategy_layout mirrored_layout(std::vector<std::string> devices);

/// Opens the GPUs of a layout: replicas compute on those among their devices, and variables lie on
/// those among theirs. Errors: throws `failure` as `check_layout` and `open_gpus`; invalid_argument
/// if the layout has other devices to compute on.
void open_named_devices(strategy_layout& layout, const gpu_source& gpus);

/// Every device has a replica and a copy of all variables; a step ends for all of them together.
/// On processors that share memory, a variable's copies are one array until they differ.
class mirrored_strategy final : public strategy {
public:
  /// Errors: throws `failure`: invalid_argument for no devices, the same one twice, one that is
  /// none, and processors beside GPUs; as `open_devices` for GPUs that are not there.
  explicit mirrored_strategy(troupe::world& world, mirrored_options options = {});
};

} // namespace troupe
