// SPDX-License-Identifier: Apache-2.0
// Makes the cross-device operations of a strategy, by name or by its devices.
#pragma once

#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// The operations of that name, in any case: "reduction_to_one_device", "all_reduce",
/// "hierarchical_copy_all_reduce" and "nccl_all_reduce", or "nccl" for short.
///
///     mirrored_strategy strategy{
///       world, {.devices = {"gpu:0", "gpu:1"},
///               .cross_device_operations = make_cross_device_ops("nccl", {"gpu:0", "gpu:1"})}};
///
/// @param devices The devices of the strategy. If they are GPUs, all operations but "all_reduce"
/// reduce there, with streams and memory of their own: `reduction_to_one_device` on the first GPU,
/// by `reduction_on_device`, the last two on all. `nccl_all_reduce` needs GPUs.
/// Errors: throws `failure`: not_found, listing the names there are; invalid_argument for
/// `nccl_all_reduce` without GPUs; as `canonical_devices`, `open_gpus`, and the operations.
[[nodiscard]] std::shared_ptr<const cross_device_ops>
make_cross_device_ops(std::string_view name, const std::vector<std::string>& devices = {},
                      const gpu_source& gpus = {});

/// The operations that suit some devices: `nccl_all_reduce` for several GPUs if NCCL is there, else
/// as `reduce_on_one_of`. @param devices The device of each replica, by canonical name.
/// @param computing The devices that replicas compute on, in turn, if `devices` are processors: for
/// example one GPU for several replicas.
/// Errors: throws `failure` as `nccl_all_reduce` and `open_gpus`.
[[nodiscard]] std::shared_ptr<const cross_device_ops>
choose_cross_device_ops(std::span<const std::string> devices, const gpu_source& gpus = {},
                        std::span<const std::shared_ptr<compute_device>> computing = {});

/// `reduction_on_device`, by the first GPU among some devices, or among those that replicas compute
/// on; `reduction_to_one_device` without one. Errors: throws `failure` as `open_gpus`.
[[nodiscard]] std::shared_ptr<const cross_device_ops>
reduce_on_one_of(std::span<const std::string> devices, const gpu_source& gpus,
                 std::span<const std::shared_ptr<compute_device>> computing = {});

} // namespace troupe
