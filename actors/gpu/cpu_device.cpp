// SPDX-License-Identifier: Apache-2.0
// A part of the CPU as a device: its streams, their memory, its loss.
#include "actors/gpu/cpu_device.hpp"

#include "messages/errors/assert.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

std::shared_ptr<cpu_device_memory> memory_of(int index, const cpu_device_options& options) {
  auto memory = std::make_shared<cpu_device_memory>();
  memory->device = fmt::format("{}:{}", options.plays_gpu ? "gpu" : "cpu", index);
  memory->bytes_max = options.bytes_max;
  return memory;
}

cpu_device_options with_streams(cpu_device_options options, uint32_t streams) {
  options.streams = streams;
  return options;
}

} // namespace

cpu_device::cpu_device(int index, cpu_device_options options)
  : cpu_device({options.plays_gpu ? device_kind::cuda : device_kind::cpu, index}, options,
               memory_of(index, options)) {}

cpu_device::cpu_device(const cpu_device& same, uint32_t streams)
  : cpu_device(same.where_, with_streams(same.options_, streams), same.memory_) {}

cpu_device::cpu_device(troupe::device where, cpu_device_options options,
                       std::shared_ptr<cpu_device_memory> memory)
  : where_(where), options_(std::move(options)), memory_(std::move(memory)) {
  TROUPE_ASSERT(options_.streams > 0);
  for (uint32_t i = 0; i < options_.streams; ++i)
    streams_.push_back(std::make_unique<cpu_stream>(where_, memory_));
}

uint32_t cpu_device::stream_count() const {
  return static_cast<uint32_t>(streams_.size());
}

cpu_stream& cpu_device::stream(uint32_t index) {
  TROUPE_ASSERT(index < streams_.size(), index, streams_.size());
  streams_[index]->catch_up();
  return *streams_[index];
}

expected<void> cpu_device::notify(uint32_t stream, std::function<void()> done) {
  if (auto reason = loss()) return tl::unexpected<error>(*reason);
  if (options_.ready) done = [ready = options_.ready, done = std::move(done)] { ready(done); };
  streams_[stream]->ask(std::move(done));
  return {};
}

std::optional<error> cpu_device::loss() {
  std::lock_guard guard{loss_mutex_};
  return loss_;
}

void cpu_device::lose(error reason) {
  std::lock_guard guard{loss_mutex_};
  if (!loss_) loss_ = std::move(reason);
}

} // namespace troupe
