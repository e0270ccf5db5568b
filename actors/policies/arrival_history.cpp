// SPDX-License-Identifier: Apache-2.0
// Rows of arrivals, and what can be read from those that are not complete.
#include "actors/policies/arrival_history.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

namespace {

template <class List>
auto& at(List& list, uint32_t replica) {
  if (list.size() <= replica) list.resize(replica + 1);
  return list[replica];
}

} // namespace

void arrival_history::add(const step_record& step) {
  auto& mine = rows_.emplace_back(row{step.step - 1, step.began, {}});
  for (const auto& gradient : step.accepted) {
    auto& came = at(mine.arrivals, gradient.replica);
    if (!came.seconds) came.seconds = seconds(gradient.arrived - mine.began);
  }
  for (const auto& gradient : step.cancelled)
    at(mine.arrivals, gradient.replica).at_least = seconds(gradient.arrived - mine.began);
  for (const auto& gradient : step.stale)
    add_late(gradient);
  if (rows_.size() > memory_) rows_.pop_front();
}

// Had its step waited for it, a gradient would have come when it came. Had steps always waited for
// a replica that was still busy with it when they began, it would have begun with them.
void arrival_history::add_late(const contribution& gradient) {
  for (auto& row : rows_) {
    if (row.local_step < gradient.local_step || row.began > gradient.arrived) continue;
    auto& came = at(row.arrivals, gradient.replica);
    if (came.seconds && !came.is_estimate) continue;
    auto is_for_it = row.local_step == gradient.local_step;
    if (came.seconds && !is_for_it) continue;
    auto took = is_for_it ? gradient.arrived - row.began : gradient.compute;
    came = {seconds(took), !is_for_it, std::nullopt};
  }
}

std::vector<double> arrival_history::expected_times(const std::vector<uint32_t>& replicas,
                                                    job_time now) const {
  struct sum {
    double seconds = 0;
    uint32_t count = 0;
    double at_least = 0; ///< Where no step has seen it.
  };

  std::vector<sum> sums(replicas.size());
  std::vector<double> seen;
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
    seen.clear();
    auto unseen = std::numeric_limits<double>::infinity(); // the earliest that is not there
    for (auto replica : replicas) {
      static const came not_there;
      const auto& one = replica < row->arrivals.size() ? row->arrivals[replica] : not_there;
      if (one.seconds)
        seen.push_back(*one.seconds);
      else
        unseen = std::min(unseen, one.at_least.value_or(seconds(now - row->began)));
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
  std::vector<double> result;
  double before = 0;
  for (const auto& one : sums) {
    before = std::max(before, one.count > 0 ? one.seconds / one.count : one.at_least);
    result.push_back(before);
  }
  return result;
}

} // namespace troupe
