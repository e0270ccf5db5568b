// SPDX-License-Identifier: Apache-2.0
// Reductions in two levels: within each half of the devices, then between the halves.
#pragma once

#include "strategies/reduce/adding_devices.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// In two levels: each half of the devices adds onto a root of its own, then the roots add. Pack t
/// of a batch has its first root at device t mod n, the second one half of the devices further.
/// Needs an even number of devices.
///
/// Source: tf.distribute.HierarchicalCopyAllReduce.
class hierarchical_copy_all_reduce final : public packed_all_reduce {
public:
  /// Between processors, which share memory.
  explicit hierarchical_copy_all_reduce(int num_packs = 1) : packed_all_reduce(num_packs) {}

  /// Between GPUs: each adds up the values of its own replicas, and values go from one to another
  /// without the host. Values are f32 or f64; others are added on the host.
  /// @param devices Different devices; their first streams are for reductions alone.
  /// @param deadline The time of one wait for a device.
  /// Errors: throws `failure` with invalid_argument for an odd number of devices, or none; as
  /// `packed_all_reduce`.
  explicit hierarchical_copy_all_reduce(std::vector<std::shared_ptr<compute_device>> devices,
                                        int num_packs = 1,
                                        job_time deadline = std::chrono::seconds{60});

  [[nodiscard]] std::string_view name() const override { return "hierarchical_copy_all_reduce"; }

  [[nodiscard]] bool waits() const override { return devices_.count() > 0; }

protected:
  /// Waits on the calling thread, where there are GPUs. Errors: throws `failure`: invalid_argument
  /// for an odd number of values, or fewer than devices; deadline_exceeded and unavailable, naming
  /// the device.
  [[nodiscard]] std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const override;

private:
  [[nodiscard]] tensor reduce_pack(reduce_op op, std::span<const tensor> components,
                                   size_t pack) const;
  [[nodiscard]] tensor sum_on_devices(std::span<const tensor> components, size_t pack) const;

  adding_devices devices_{{}, {}};
  mutable std::mutex mutex_; ///< Devices are asked by one thread at a time.
};

} // namespace troupe
