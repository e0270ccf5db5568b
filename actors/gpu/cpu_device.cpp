// SPDX-License-Identifier: Apache-2.0
// Streams over one memory, and the device's end.
#include "actors/gpu/cpu_device.hpp"

#include "messages/assert.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

cpu_device::cpu_device(int index, cpu_device_options options)
  : where_{options.plays_gpu ? device_kind::cuda : device_kind::cpu, index},
    options_(std::move(options)) {
  TROUPE_ASSERT(options_.streams > 0);
  memory_->device = fmt::format("{}:{}", options_.plays_gpu ? "gpu" : "cpu", index);
  memory_->bytes_max = options_.bytes_max;
  for (uint32_t i = 0; i < options_.streams; ++i)
    streams_.push_back(std::make_unique<cpu_stream>(where_, memory_));
}

uint32_t cpu_device::stream_count() const {
  return static_cast<uint32_t>(streams_.size());
}

cpu_stream& cpu_device::stream(uint32_t index) {
  TROUPE_ASSERT(index < streams_.size(), index, streams_.size());
  return *streams_[index];
}

expected<void> cpu_device::notify(uint32_t stream, std::function<void()> done) {
  if (auto why = loss()) return tl::unexpected<error>(*why);
  if (options_.ready) done = [ready = options_.ready, done = std::move(done)] { ready(done); };
  this->stream(stream).ask(std::move(done));
  return {};
}

std::optional<error> cpu_device::loss() {
  std::lock_guard guard{loss_mutex_};
  return loss_;
}

void cpu_device::lose(error why) {
  std::lock_guard guard{loss_mutex_};
  if (!loss_) loss_ = std::move(why);
}

} // namespace troupe
