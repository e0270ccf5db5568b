// SPDX-License-Identifier: Apache-2.0
// A stream of a device that is a part of this processor.
#pragma once

#include "actors/world/compute_device.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// A point in a stream, for others to wait for.
class cpu_mark;

/// The memory of a `cpu_device`: what its streams have in common.
struct cpu_device_memory {
  std::string device;   ///< For errors.
  size_t bytes_max = 0; ///< A tensor that does not fit is refused.
  buffer_pool pool{0};
  std::atomic<uint64_t> uploads{0}; ///< Values that came from the host.
  std::atomic<uint64_t> bytes_from_host{0};
  std::atomic<uint64_t> bytes_to_host{0};
  std::mutex marks_mutex;
  std::vector<std::shared_ptr<cpu_mark>> marks; ///< Published work that is not done yet.

  /// Errors: resource.
  [[nodiscard]] expected<std::shared_ptr<std::byte>> allocate(size_t bytes);
};

/// Does its work at once, on the thread that asks; unless something holds it, such as a collective
/// that waits for other devices: then later, in order, on the thread that lets go.
class cpu_stream final : public compute_stream {
public:
  /// @param where The device that it is a stream of.
  cpu_stream(troupe::device where, std::shared_ptr<cpu_device_memory> memory);

  [[nodiscard]] troupe::device where() const override { return where_; }

  [[nodiscard]] expected<tensor> to_device(const tensor& value) override;
  [[nodiscard]] expected<void> copy_to_device(const tensor& value, tensor there) override;
  [[nodiscard]] expected<tensor> to_host(const tensor& value) override;
  [[nodiscard]] expected<void> copy_to_host(const tensor& value, tensor there) override;
  [[nodiscard]] expected<tensor> make(dtype type, const shape& extents) override;
  [[nodiscard]] expected<tensor> sum(std::span<const tensor> values, double divisor) override;
  [[nodiscard]] expected<tensor> gather(std::span<const tensor> values, size_t axis) override;
  [[nodiscard]] expected<tensor> combine(const sparse_sum& rows, dtype type) override;
  [[nodiscard]] expected<void> prepare(variable_state& variable, const update_plan& plan) override;
  [[nodiscard]] expected<void> update(variable_state& variable, const update_plan& plan,
                                      const gradient_mean& mean) override;
  [[nodiscard]] expected<std::vector<double>>
  squared_norms(std::span<const measured_mean> means) override;
  [[nodiscard]] expected<void> wait() override;

  /// Has `work` called when all that was asked before is done.
  void ask(std::function<void()> work);

  /// Has `work` called when all that was asked before is done. The stream goes on once `let_go` is
  /// called, by `work` or later.
  void hold(std::function<void(std::function<void()> let_go)> work);

  /// As `compute_device::publish`.
  void publish();

  /// Has all later work done after all that was published.
  void catch_up();

private:
  class queue;

  [[nodiscard]] bool lies_here(const tensor& value);
  [[nodiscard]] expected<void> unshare(tensor& values);

  [[nodiscard]] bool plays_gpu() const { return where_.kind != device_kind::cpu; }

  troupe::device where_;
  std::shared_ptr<cpu_device_memory> memory_;
  std::shared_ptr<queue> queue_;                  ///< Shared with its holders.
  std::vector<std::weak_ptr<const void>> blocks_; ///< Handed out, and perhaps still in use.
};

} // namespace troupe
