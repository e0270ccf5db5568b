// SPDX-License-Identifier: Apache-2.0
// A device that adds up values on devices.
#pragma once

#include "strategies/reduce/adding_devices.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// If the host added values that replicas have computed on a GPU, they would cross the bus once for
/// each replica. NCCL takes one rank for each GPU, so it does not help several logical replicas on
/// one GPU. So the GPU adds the values itself, by its kernel for gradients, and only the result
/// crosses the bus.
///
/// | values                               | are added                                             |
/// |--------------------------------------|-------------------------------------------------------|
/// | f32 and f64, on this device          | there                                                 |
/// | f32 and f64, on another one, or some | there, too, once copied                               |
/// | of other dtypes, on a device         | on the host, once copied                              |
/// | of the host                          | there: one pass takes less time than the copies would |
///
/// A device that is a part of the processor, which has no bus, adds all f32 and f64. The bits are
/// those of an addition on the host: the order is that of the replicas. Results lie in the host's
/// memory, unless they are wanted where they are made.
///
/// Source: tf.distribute.ReductionToOneDevice, on an accelerator.
class reduction_on_device final : public packed_all_reduce {
public:
  /// @param device Its first stream is for reductions alone. @param deadline The time of one
  /// reduction.
  explicit reduction_on_device(std::shared_ptr<compute_device> device,
                               job_time deadline = std::chrono::seconds{60});

  [[nodiscard]] std::string_view name() const override { return "reduction_to_one_device"; }

  [[nodiscard]] bool waits() const override { return true; }

  /// On this device. Errors: throws `failure` as `check_alike` and `reduce_packs`.
  [[nodiscard]] std::vector<std::vector<tensor>>
  sums_on_devices(std::span<const std::vector<tensor>> values) const override;

protected:
  /// All values of a batch are asked for, and then waited for once, on the calling thread.
  /// Errors: throws `failure`: invalid_argument for values of a device that are not row-major;
  /// resource for want of memory; deadline_exceeded and unavailable, naming the device.
  [[nodiscard]] std::vector<tensor>
  reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const override;

private:
  enum class place : uint8_t { host, here, host_after_copies };

  [[nodiscard]] place where_to_add(std::span<const tensor> components) const;
  [[nodiscard]] tensor fetched(const tensor& value) const;

  /// The values that the host has to add or divide: the sum that the device made, or components.
  [[nodiscard]] std::vector<std::vector<tensor>>
  on_host(std::span<const std::vector<tensor>> packs) const;

  adding_devices devices_;   ///< One device.
  mutable std::mutex mutex_; ///< It is asked by one thread at a time.
};

} // namespace troupe
