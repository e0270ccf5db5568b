// SPDX-License-Identifier: Apache-2.0
// The wait for a participant of a group of devices.
#include "actors/gpu/collective_library.hpp"

#include "actors/recording/seconds.hpp"

#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace troupe {

expected<void> settle(collective_participant& participant, job_time timeout) {
  using clock = std::chrono::steady_clock;
  for (auto until = clock::now() + timeout;;) {
    auto ready = participant.is_ready();
    if (!ready) return tl::unexpected<error>(ready.error());
    if (*ready) return {};
    if (clock::now() >= until)
      return fail(errc::deadline_exceeded,
                  fmt::format("a device has not taken a collective in {:.1f} s", seconds(timeout)));
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }
}

} // namespace troupe
