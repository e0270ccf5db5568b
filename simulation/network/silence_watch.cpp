// SPDX-License-Identifier: Apache-2.0
// Silent pairs of nodes, and when each is given up.
#include "simulation/network/silence_watch.hpp"

#include "actors/net/silence_timeout.hpp"
#include "simulation/network/end_of_time.hpp"

#include <algorithm>

namespace troupe {

std::optional<job_time> silence_watch::look(pair from_to, bool is_silent, job_time now,
                                            double rate) {
  if (!is_silent) given_up_at_.erase(from_to);
  if (!is_silent || is_off() || given_up_at_.contains(from_to)) return std::nullopt;
  constexpr job_time tick_max = time_max / (ticks_in_timeout + 2); // no clock runs over
  auto nanoseconds = static_cast<double>((timeout_ / ticks_in_timeout).count()) / rate;
  job_time tick{
    static_cast<int64_t>(std::clamp(nanoseconds, 1.0, static_cast<double>(tick_max.count())))};
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
