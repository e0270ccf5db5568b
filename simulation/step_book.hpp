// SPDX-License-Identifier: Apache-2.0
// The figures of reports, kept step by step.
#pragma once

#include "simulation/ledger_hash.hpp"
#include "simulation/network/end_of_time.hpp"
#include "simulation/scenario.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace troupe {

/// The error that reports a step that ended later.
[[nodiscard]] inline error end_of_time(uint64_t step) {
  return {errc::invalid_argument,
          fmt::format("step {} ended after 146 virtual years, and clocks count no more than twice "
                      "that; make fewer steps, or let them take less time",
                      step)};
}

/// Adds to a report what so many replicas computed in vain; no more than a clock counts.
inline void add_waste(scenario_report& report, job_time each, size_t replicas = 1) {
  int64_t sum = 0;
  auto is_beyond = __builtin_mul_overflow(each.count(), replicas, &sum)
                   || __builtin_add_overflow(report.wasted.count(), sum, &sum);
  report.wasted = is_beyond ? job_time::max() : job_time{sum};
}

/// Adds each step of a run to its report, which outlives the book.
class step_book {
public:
  step_book(scenario_report& report, const scenario& what)
    : report_(report), cancels_(traits_of(what.sync.policy).cancels()), hashes_(what.hashes) {}

  void add(const step_record& step) {
    report_.step_times.push_back(step.ended - step.began);
    report_.accepted += step.accepted.size();
    report_.stale += step.stale.size();
    ++report_.needed[step.needed];
    report_.cancelled += step.cancelled.size();
    count_staleness(step.accepted);
    count_staleness(step.stale);
    for (const auto& gradient : step.stale)
      add_stale(gradient);
    // A replica that is cancelled has worked since the step began: a token takes no time to come.
    add_waste(report_, step.ended - step.began, step.cancelled.size());
    report_.live_time
      += std::chrono::duration<double>{step.ended - report_.virtual_time} * step.live;
    report_.virtual_time = step.ended;
    if (!hashes_) return;
    hash_.add(step);
    report_.log_hash = hash_.value();
  }

private:
  // Most gradients are late by as much as the one before.
  void count_staleness(const std::vector<contribution>& gradients) {
    for (auto one = gradients.begin(); one != gradients.end();) {
      auto other = std::find_if(one, gradients.end(), [one](const contribution& next) {
        return next.staleness != one->staleness;
      });
      report_.staleness_counts[one->staleness] += static_cast<uint64_t>(other - one);
      one = other;
    }
  }

  // Where replicas are cancelled, one that was done at the same moment as the last that was needed
  // is told to stop and has its gradient dropped: that is one gradient, and it is in the books.
  void add_stale(const contribution& gradient) {
    if (cancels_)
      --report_.cancelled;
    else
      add_waste(report_, gradient.compute);
  }

  scenario_report& report_;
  bool cancels_;
  bool hashes_;
  ledger_hash hash_;
};

} // namespace troupe
