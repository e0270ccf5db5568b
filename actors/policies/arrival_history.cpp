// SPDX-License-Identifier: Apache-2.0
// Rows of arrivals, and estimates from rows that are not complete.
#include "actors/policies/arrival_history.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe {

namespace {

template <class List>
auto& at(List& list, uint32_t replica) {
  if (list.size() <= replica) list.resize(replica + 1);
  return list[replica];
}

} // namespace

void arrival_history::add(const step_record& step) {
  auto& added = rows_.emplace_back(arrival_row{step.step - 1, step.began, {}});
  for (const auto& gradient : step.accepted) {
    auto& arrived = at(added.arrivals, gradient.replica);
    if (!arrived.seconds) arrived.seconds = seconds(gradient.arrived - added.began);
  }
  for (const auto& gradient : step.cancelled)
    at(added.arrivals, gradient.replica).at_least = seconds(gradient.arrived - added.began);
  for (const auto& gradient : step.stale)
    add_late(gradient);
  if (rows_.size() > memory_) rows_.pop_front();
}

void arrival_history::restore(std::deque<arrival_row> rows) {
  rows_ = std::move(rows);
  while (rows_.size() > memory_)
    rows_.pop_front();
}

// Completes rows by a late gradient. Had its own step waited, the gradient would have come when it
// came. Later steps began while its replica was busy with it: had steps always waited for all, the
// replica would have begun with them, so the computing time is the estimate.
void arrival_history::add_late(const contribution& gradient) {
  for (auto& row : rows_) {
    if (row.local_step < gradient.local_step || row.began > gradient.arrived) continue;
    auto& arrived = at(row.arrivals, gradient.replica);
    if (arrived.seconds && !arrived.is_estimate) continue;
    auto is_for_it = row.local_step == gradient.local_step;
    if (arrived.seconds && !is_for_it) continue;
    auto took = is_for_it ? gradient.arrived - row.began : gradient.compute;
    arrived = {seconds(took), !is_for_it, std::nullopt};
  }
}

std::vector<double> arrival_history::expected_times(const std::vector<uint32_t>& replicas,
                                                    job_time now) const {
  struct sum {
    double seconds = 0;
    uint32_t count = 0;
    double at_least = 0; ///< Where no step has seen it.
  };

  std::vector<sum> sums(replicas.size()); // by k
  std::vector<double> seen;
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
    seen.clear();
    auto unseen = std::numeric_limits<double>::infinity(); // the earliest that has not come
    for (auto replica : replicas) {
      static const arrival_time unknown;
      const auto& arrived = replica < row->arrivals.size() ? row->arrivals[replica] : unknown;
      if (arrived.seconds)
        seen.push_back(*arrived.seconds);
      else
        unseen = std::min(unseen, arrived.at_least.value_or(seconds(now - row->began)));
    }
    std::ranges::sort(seen);
    for (size_t k = 0; k < sums.size(); ++k) {
      auto is_seen = k < seen.size() && seen[k] <= unseen;
      if (!is_seen) {
        sums[k].at_least = std::max(sums[k].at_least, unseen);
      } else if (sums[k].count < window_) {
        sums[k].seconds += seen[k];
        ++sums[k].count;
      }
    }
  }
  std::vector<double> times;
  double latest = 0;
  for (const auto& sum : sums) {
    latest = std::max(latest, sum.count > 0 ? sum.seconds / sum.count : sum.at_least);
    times.push_back(latest);
  }
  return times;
}

} // namespace troupe
