// SPDX-License-Identifier: Apache-2.0
// The seconds of all replicas, added up step by step.
#include "simulation/reports/work_account.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

double work_totals::replica_seconds_per_accepted() const {
  return accepted == 0 ? std::numeric_limits<double>::infinity()
                       : replica_seconds / static_cast<double>(accepted);
}

void work_account::add(const step_record& step) {
  auto length = seconds(step.ended - step.began);
  auto count = static_cast<double>(replicas_.size());
  totals_.replica_seconds += count * length;
  totals_.down_seconds += (count - static_cast<double>(step.live)) * length;
  for (const auto& gradient : step.accepted) {
    auto& replica = replicas_.at(gradient.replica);
    ++replica.accepted;
    replica.useful_seconds += seconds(gradient.compute);
    totals_.useful_seconds += seconds(gradient.compute);
  }
  totals_.accepted += step.accepted.size();
  for (const auto& gradient : step.stale)
    add_stale(gradient);
  if (!cancels_) return;
  for (const auto& gradient : step.cancelled) {
    auto& replica = replicas_.at(gradient.replica);
    ++replica.cancelled;
    replica.wasted_seconds += length;
    totals_.cancelled_seconds += length;
    ++totals_.cancelled;
  }
}

// Where replicas are cancelled, one that was done at the same moment as the last that was needed
// is told to stop and has its gradient dropped: that is one gradient, and it is in the books.
void work_account::add_stale(const contribution& gradient) {
  auto& replica = replicas_.at(gradient.replica);
  auto length = seconds(gradient.compute);
  ++replica.stale;
  ++totals_.stale;
  totals_.stale_seconds += length;
  if (!cancels_) {
    replica.wasted_seconds += length;
    return;
  }
  if (replica.cancelled == 0) return; // told to stop in a step that does not count
  --replica.cancelled;
  --totals_.cancelled;
  totals_.cancelled_seconds -= length;
}

work_totals work_account::totals() const {
  auto result = totals_;
  result.waiting_seconds
    = std::max(0.0, result.replica_seconds - result.useful_seconds - result.stale_seconds
                      - result.cancelled_seconds - result.down_seconds);
  return result;
}

} // namespace troupe
