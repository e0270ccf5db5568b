// SPDX-License-Identifier: Apache-2.0
// Which messages tell of a trip.
#include "simulation/reports/gradient_trips.hpp"

#include <string_view>

namespace troupe {

void gradient_trips::add(const delivery& came) {
  if (came.replica >= asked_.size()) return;
  std::string_view kind = came.kind;
  if (kind == "ReadVariable") asked_[came.replica] = came.sent;
  if (kind == "PushGradient") arrived_[came.replica][came.time] = {asked_[came.replica], came.sent};
}

std::optional<gradient_trip> gradient_trips::take(uint32_t replica, job_time arrived) {
  auto found = arrived_[replica].extract(arrived);
  return found ? std::optional{found.mapped()} : std::nullopt;
}

void gradient_trips::forget_before(job_time time) {
  for (auto& of_replica : arrived_)
    of_replica.erase(of_replica.begin(), of_replica.lower_bound(time));
}

} // namespace troupe
