// SPDX-License-Identifier: Apache-2.0
// Waiting for a participant.
#include "actors/gpu/collective_library.hpp"

#include <chrono>
#include <thread>

namespace troupe {

expected<void> settle(collective_participant& participant) {
  while (true) {
    auto ready = participant.is_ready();
    if (!ready) return tl::unexpected<error>(ready.error());
    if (*ready) return {};
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }
}

} // namespace troupe
