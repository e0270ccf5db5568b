// SPDX-License-Identifier: Apache-2.0
// The trips of gradients, out of messages between nodes.
#include "simulation/reports/gradient_trips.hpp"

#include <string_view>

namespace troupe {

void gradient_trips::add(const delivery& delivery) {
  if (delivery.replica >= asked_.size()) return;
  std::string_view kind = delivery.kind;
  auto& asked = asked_[delivery.replica];
  if (kind == "ReadVariable") asked = delivery.sent;
  if (kind == "PushGradient") arrived_[delivery.replica][delivery.time] = {asked, delivery.sent};
}

std::optional<gradient_trip> gradient_trips::take(uint32_t replica, job_time arrived) {
  auto found = arrived_[replica].extract(arrived);
  return found ? std::optional{found.mapped()} : std::nullopt;
}

void gradient_trips::forget_before(job_time time) {
  for (auto& trips : arrived_)
    trips.erase(trips.begin(), trips.lower_bound(time));
}

} // namespace troupe
