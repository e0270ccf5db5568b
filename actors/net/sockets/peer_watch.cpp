// SPDX-License-Identifier: Apache-2.0
// Ticks without a word, and ticks without credit.
#include "actors/net/sockets/peer_watch.hpp"

#include "actors/net/silence_timeout.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// No peer makes a link wait longer, however rarely it wants to be heard.
constexpr std::chrono::nanoseconds silence_timeout_max{std::chrono::minutes{5}};

} // namespace

void peer_watch::allow(std::chrono::nanoseconds heartbeat) {
  silence_timeout_ = std::max(silence_timeout_, 3 * std::min(heartbeat, silence_timeout_max));
}

std::chrono::nanoseconds peer_watch::tick() const {
  return silence_timeout_ / ticks_in_timeout;
}

uint32_t peer_watch::count_silence() {
  silent_ticks_ = std::exchange(has_heard_, false) ? 0 : silent_ticks_ + 1;
  return silent_ticks_;
}

bool peer_watch::count_starvation(bool is_starved) {
  starved_ticks_ = is_starved ? starved_ticks_ + 1 : 0;
  return starved_ticks_ == std::max<int64_t>(1, starved_timeout / tick());
}

// A peer that is there may be silent for one of our ticks, since its own are as long.
std::chrono::nanoseconds peer_watch::silence() const {
  return (std::max(silent_ticks_, 1U) - 1) * tick();
}

} // namespace troupe
