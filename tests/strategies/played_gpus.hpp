// SPDX-License-Identifier: Apache-2.0
// GPUs that strategies find by name, played by parts of the processor.
#pragma once

#include "actors/gpu/cpu_collectives.hpp"
#include "actors/gpu/cpu_device.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::test {

using played_gpu_list = std::vector<std::shared_ptr<cpu_device>>;

/// So many devices, each with so many streams.
[[nodiscard]] inline played_gpu_list make_gpus(size_t count, uint32_t streams = 1) {
  played_gpu_list made;
  for (size_t i = 0; i < count; ++i)
    made.push_back(
      std::make_shared<cpu_device>(static_cast<int>(i), cpu_device_options{.streams = streams}));
  return made;
}

/// As strategies take them.
[[nodiscard]] inline std::vector<std::shared_ptr<compute_device>>
as_given(const played_gpu_list& devices) {
  return {devices.begin(), devices.end()};
}

/// A machine with so many GPUs. Each time that one is opened it is another device of that index.
struct played_gpus {
  /// @param options Options of each device that is opened.
  explicit played_gpus(int how_many, bool with_nccl = true, cpu_device_options options = {})
    : count(how_many), has_nccl(with_nccl), options(std::move(options)) {}

  /// Outlives what is made from it.
  [[nodiscard]] gpu_source source() {
    return {.open = [this](std::span<const device> named, uint32_t) { return open(named); },
            .open_collectives = [this] { return open_collectives(); }};
  }

  expected<std::vector<std::shared_ptr<compute_device>>> open(std::span<const device> named) {
    std::lock_guard guard{mutex};
    std::vector<std::shared_ptr<compute_device>> result;
    for (const auto& one : named) {
      if (one.index >= count)
        return fail(errc::not_found, fmt::format("there is no gpu:{} here: the last one is gpu:{}",
                                                 one.index, count - 1));
      opened.push_back(std::make_shared<cpu_device>(one.index, options));
      result.push_back(opened.back());
    }
    return result;
  }

  expected<std::shared_ptr<collective_library>> open_collectives() const {
    if (!has_nccl) return fail(errc::resource, "NCCL cannot be loaded");
    return collectives;
  }

  /// Bytes that went from the host's memory to any of them, or came back.
  [[nodiscard]] uint64_t bytes_over_the_bus() const {
    uint64_t bytes = 0;
    for (const auto& device : opened)
      bytes += device->bytes_from_host() + device->bytes_to_host();
    return bytes;
  }

  /// Values that were copied to all of them.
  [[nodiscard]] uint64_t uploads() const {
    uint64_t sum = 0;
    for (const auto& device : opened)
      sum += device->uploads();
    return sum;
  }

  int count;
  bool has_nccl;
  cpu_device_options options;
  std::mutex mutex; ///< Processes that are played by threads share them.
  played_gpu_list opened;
  std::shared_ptr<cpu_collectives> collectives = std::make_shared<cpu_collectives>();
};

} // namespace troupe::test
