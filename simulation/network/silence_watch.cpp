// SPDX-License-Identifier: Apache-2.0
// Silent pairs of nodes, and when each is given up.
#include "simulation/network/silence_watch.hpp"

#include "actors/net/silence_timeout.hpp"

#include <algorithm>

namespace troupe {

std::optional<job_time> silence_watch::look(pair from_to, bool is_silent, job_time now,
                                            double rate) {
  if (!is_silent) given_up_at_.erase(from_to);
  if (!is_silent || is_off() || given_up_at_.contains(from_to)) return std::nullopt;
  job_time tick{
    static_cast<int64_t>(static_cast<double>((timeout_ / ticks_in_timeout).count()) / rate)};
  tick = std::max(tick, job_time{1});
  auto heard = (now / tick + 1) * tick;
  return given_up_at_[from_to] = heard + ticks_in_timeout * tick;
}

std::vector<silence_watch::pair> silence_watch::take_given_up(job_time now) {
  std::vector<pair> given_up;
  std::erase_if(given_up_at_, [&](const auto& entry) {
    const auto& [pair, time] = entry;
    if (time > now) return false;
    given_up.push_back(pair);
    return true;
  });
  return given_up;
}

void silence_watch::forget(node_index node) {
  std::erase_if(given_up_at_, [node](const auto& entry) {
    return entry.first.first == node || entry.first.second == node;
  });
}

} // namespace troupe
