// SPDX-License-Identifier: Apache-2.0
// Devices by the names that people give them.
#pragma once

#include "actors/world/compute_device.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// The device of one name, in any case: "cpu:1", "gpu:0", "/device:GPU:0".
/// Errors: invalid_argument.
[[nodiscard]] expected<device> read_device(std::string_view name);

/// The devices of "cpu", or of "gpu:0,gpu:1": as many names of GPUs as wanted, separated by commas;
/// "/device:GPU:0" is another name of "gpu:0".
/// @returns Nothing for the processor.
/// Errors: invalid_argument, naming what is no device, or was named twice.
[[nodiscard]] expected<std::vector<device>> read_devices(std::string_view names);

/// Opens devices.
/// @param users How many share them, in turn; each gets a stream.
/// @returns In the order of `named`. Errors: unimplemented, if this build has no GPU support;
/// unavailable, if there is no GPU; not_found, if there are others. The line says which.
[[nodiscard]] expected<std::vector<std::shared_ptr<compute_device>>>
open_devices(std::span<const device> named, uint32_t users);

} // namespace troupe
