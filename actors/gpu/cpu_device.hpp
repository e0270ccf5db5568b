// SPDX-License-Identifier: Apache-2.0
// A device that is a part of this processor: with memory and streams of its own, as a GPU has.
#pragma once

#include "actors/gpu/cpu_stream.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// The settings of a `cpu_device`.
struct cpu_device_options {
  uint32_t streams = 1;
  /// Whether it says that it is a GPU, so that no other code reads its memory.
  bool plays_gpu = false;
  size_t bytes_max = size_t{1} << 34; ///< Its memory; a tensor that does not fit is refused.
  /// Decides when a stream counts as done: given what tells so, calls it now or later. Empty: now.
  std::function<void(std::function<void()> done)> ready{};
};

/// Code for GPUs has to be tried where there is none, and in virtual time. This device computes on
/// the thread that asks, and copies to and from memory of its own, so that a value which was not
/// copied is not there. It can be lost, as a GPU can.
class cpu_device final : public compute_device {
public:
  /// @param index The 1 of "cpu:1", or of "gpu:1". @pre options.streams > 0
  explicit cpu_device(int index, cpu_device_options options = {});

  /// Another handle to a device, with streams of its own; the memory is one. It is lost alone.
  cpu_device(const cpu_device& same, uint32_t streams);

  [[nodiscard]] std::string name() const override { return memory_->device; }

  [[nodiscard]] troupe::device where() const override { return where_; }

  [[nodiscard]] uint32_t stream_count() const override;
  [[nodiscard]] cpu_stream& stream(uint32_t index) override;

  void publish(uint32_t stream) override { streams_[stream]->publish(); }

  [[nodiscard]] bool is_well(uint32_t /*stream*/) override { return !loss(); }

  [[nodiscard]] expected<void> notify(uint32_t stream, std::function<void()> done) override;
  [[nodiscard]] std::optional<error> loss() override;

  /// From now on it is of no use. Thread: any.
  void lose(error reason);

  /// Bytes of its memory that hold something.
  [[nodiscard]] size_t bytes_in_use() const { return memory_->pool.bytes_in_use(); }

  /// Values copied to its memory so far.
  [[nodiscard]] uint64_t uploads() const { return memory_->uploads; }

  /// Bytes copied to its memory so far, and from there to the host's.
  [[nodiscard]] uint64_t bytes_from_host() const { return memory_->bytes_from_host; }

  [[nodiscard]] uint64_t bytes_to_host() const { return memory_->bytes_to_host; }

private:
  cpu_device(troupe::device where, cpu_device_options options,
             std::shared_ptr<cpu_device_memory> memory);

  troupe::device where_;
  cpu_device_options options_;
  std::shared_ptr<cpu_device_memory> memory_;
  std::vector<std::unique_ptr<cpu_stream>> streams_;
  std::mutex loss_mutex_;
  std::optional<error> loss_;
};

} // namespace troupe
