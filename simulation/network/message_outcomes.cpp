// SPDX-License-Identifier: Apache-2.0
// Counts of messages, by name.
#include "simulation/network/message_outcomes.hpp"

#include <array>
#include <fmt/format.h>

namespace troupe {

void message_outcomes::count(message_outcome result, const in_flight_message& message) {
  ++counts_[{result, message.kind}];
  auto is_lost = result == message_outcome::lost || result == message_outcome::too_late;
  auto is_found = result == message_outcome::delivered && !lost_gradients_.empty();
  if (!is_lost && !is_found) return;
  auto gradient = gradient_of(message.parcel);
  if (gradient && is_lost) lost_gradients_.insert(*gradient);
  if (gradient && is_found) lost_gradients_.erase(*gradient);
}

std::map<std::string, uint64_t> message_outcomes::counts() const {
  static constexpr std::array names{"delivered", "lost",     "duplicated", "reordered",
                                    "held",      "too late", "recalled"};
  std::map<std::string, uint64_t> result;
  for (const auto& [event, number] : counts_)
    result[fmt::format("{} {}", names[static_cast<size_t>(event.first)], event.second)] += number;
  if (given_up_ > 0) result["given up node"] = given_up_;
  return result;
}

} // namespace troupe
