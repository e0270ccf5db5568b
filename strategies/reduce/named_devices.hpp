// SPDX-License-Identifier: Apache-2.0
// The devices of a strategy, as its maker names them.
#pragma once

#include "actors/gpu/device_list.hpp"
#include "actors/gpu/nccl_collectives.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Where GPUs come from, and what reduces between them: by default the GPUs of this machine, and
/// NCCL. Without GPUs, parts of the processor can stand for them.
struct gpu_source {
  /// As `open_devices`.
  std::function<expected<std::vector<std::shared_ptr<compute_device>>>(
    std::span<const device> named, uint32_t users)>
    open = open_devices;
  /// As `open_nccl`.
  std::function<expected<std::shared_ptr<collective_library>>()> open_collectives = open_nccl;
};

/// The names as the library spells them: "/device:CPU:1" and "CPU:1" are "cpu:1".
/// Errors: throws `failure` with invalid_argument for a device that is none.
[[nodiscard]] std::vector<std::string> canonical_devices(std::vector<std::string> names);

/// Whether all devices are GPUs; false for none. @param names Canonical ones.
[[nodiscard]] bool are_gpus(std::span<const std::string> names);

/// Opens GPUs by their names.
/// @param names Canonical names, without repetitions.
/// @returns The GPUs, in that order; none, if all are processors.
/// Errors: throws `failure`: invalid_argument if some are GPUs and some are not; as `open_devices`,
/// naming them.
[[nodiscard]] std::vector<std::shared_ptr<compute_device>>
open_gpus(std::span<const std::string> names, const gpu_source& gpus);

} // namespace troupe
