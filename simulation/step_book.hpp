// SPDX-License-Identifier: Apache-2.0
// The figures of a scenario's report, added up step by step.
#pragma once

#include "messages/errors/failure.hpp"
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
  /// Both outlive it.
  step_book(scenario_report& report, const scenario& scenario)
    : report_(report), scenario_(scenario), cancels_(traits_of(scenario.sync.policy).cancels()) {}

  /// Adds a step, and tells it. Errors: throws `failure` if it ended too late for a clock.
  void add_and_tell(const step_record& step) {
    add(step);
    if (step.ended > time_max) throw failure{end_of_time(step.step)};
    if (scenario_.on_step) scenario_.on_step(step);
  }

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
    if (!scenario_.hashes) return;
    hash_.add(step);
    report_.log_hash = hash_.value();
  }

private:
  // Most gradients are late by as much as the one before.
  void count_staleness(const std::vector<contribution>& gradients) {
    for (auto first = gradients.begin(); first != gradients.end();) {
      auto end = std::find_if(first, gradients.end(), [first](const contribution& next) {
        return next.staleness != first->staleness;
      });
      report_.staleness_counts[first->staleness] += static_cast<uint64_t>(end - first);
      first = end;
    }
  }

  // A replica that was told to stop has been counted before: see `work_account::add_stale`.
  void add_stale(const contribution& gradient) {
    if (cancels_)
      --report_.cancelled;
    else
      add_waste(report_, gradient.compute);
  }

  scenario_report& report_;
  const scenario& scenario_;
  bool cancels_;
  ledger_hash hash_;
};

} // namespace troupe
