// SPDX-License-Identifier: Apache-2.0
// Reductions between devices of one process by NCCL.
#pragma once

#include "actors/gpu/collective_library.hpp"
#include "strategies/reduce/adding_devices.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// Each device adds up the components of its own replicas, then the devices reduce among
/// themselves, as NCCL does; it takes one rank for each GPU, so several replicas on one GPU are
/// added by a kernel of ours first. Values are f32 or f64; others are added on the host.
///
/// Components may lie on the device that they belong to, and stay as they are.
///
/// Source: tf.distribute.NcclAllReduce.
class nccl_all_reduce final : public packed_all_reduce {
public:
  /// Waits until the devices have come together.
  /// @param devices Different devices; their first streams are for reductions alone.
  /// @param library The library of these devices: `open_nccl` for GPUs.
  /// @param deadline The time to come together, and the time of one reduction.
  /// Errors: throws `failure`: invalid_argument for no devices, and as `packed_all_reduce`;
  /// deadline_exceeded; as the library.
  nccl_all_reduce(std::vector<std::shared_ptr<compute_device>> devices,
                  const std::shared_ptr<collective_library>& library, int num_packs = 1,
                  job_time deadline = std::chrono::seconds{60});

  [[nodiscard]] std::string_view name() const override { return "nccl_all_reduce"; }

  [[nodiscard]] bool waits() const override { return true; }

  /// On every device. Errors: throws `failure` as `check_alike` and `reduce_packs`.
  [[nodiscard]] std::vector<std::vector<tensor>>
  sums_on_devices(std::span<const std::vector<tensor>> values) const override;

protected:
  /// All packs of a batch are one call of each device, and waited for once, on the calling thread.
  /// Errors: throws `failure`: invalid_argument for fewer components than devices, and resource for
  /// want of memory, this time; deadline_exceeded and unavailable, naming the device, and from then
  /// on always.
  [[nodiscard]] std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const override;

private:
  /// The packs of a batch that devices add, as they are asked for.
  struct device_packs {
    std::vector<size_t> positions;                     ///< Their positions in the batch.
    std::vector<std::vector<device_collective>> parts; ///< By device and pack.
  };

  [[nodiscard]] device_packs add_own(std::span<const std::vector<tensor>> packs) const;
  void add_pack(device_packs& packs, std::span<const tensor> components) const;
  void all_reduce(const device_packs& packs, std::span<const tensor> on_host = {}) const;
  void ask_devices(const device_packs& packs, std::span<const tensor> on_host) const;

  adding_devices devices_;
  std::shared_ptr<collective_library> library_;
  std::vector<std::unique_ptr<collective_participant>> participants_; ///< By device.
  mutable std::mutex mutex_; ///< Devices have to be asked in one order.
};

} // namespace troupe
