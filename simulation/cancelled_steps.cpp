// SPDX-License-Identifier: Apache-2.0
// The N-th smallest of a step's computing times ends it.
#include "simulation/cancelled_steps.hpp"

#include "messages/errors/failure.hpp"
#include "simulation/replica_draws.hpp"
#include "simulation/step_book.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

/// Gradients of a step.
struct step_counts {
  job_time ended{0};
  uint64_t cancelled = 0; ///< Their replicas were told to stop; `late` among them.
  uint64_t late = 0;      ///< Done in the moment in which the step had enough; too late for it.
};

// @param ends When each live replica is done; reordered.
step_counts count(std::vector<job_time>& ends, uint32_t needed) {
  auto last = ends.begin() + (needed - 1);
  std::ranges::nth_element(ends, last);
  auto late = std::count(last + 1, ends.end(), *last);
  return {.ended = *last, .cancelled = ends.size() - needed, .late = static_cast<uint64_t>(late)};
}

} // namespace

bool counts_cancelled_steps(const scenario& scenario) {
  const auto& sync = scenario.sync;
  return traits_of(sync.policy).cancels() && !sync.dynamic && !scenario.hashes && !scenario.on_step
         && !scenario.update && scenario.local_sgd.local_steps == 1
         && live_replicas(scenario).size() >= sync.replicas_to_aggregate;
}

void count_cancelled_steps(const scenario& scenario, scenario_report& report) {
  value_or_throw(scenario.sync.validate());
  auto needed = scenario.sync.replicas_to_aggregate;
  auto live = live_replicas(scenario);
  replica_draws draws{scenario};
  std::vector<job_time> ends(live.size());
  job_time began{0};
  uint64_t late = 0; // of the step before: the ledger of the next one has them
  for (uint64_t step = 1; step <= scenario.steps; ++step) {
    for (size_t i = 0; i < live.size(); ++i)
      ends[i] = later(began, draws.next(live[i]));
    auto counted = count(ends, needed);
    auto time = counted.ended - began;
    report.step_times.push_back(time);
    report.accepted += needed;
    report.staleness_counts[0] += needed;
    ++report.needed[needed];
    report.cancelled += counted.cancelled - late;
    add_waste(report, time, counted.cancelled);
    if (late > 0) report.staleness_counts[1] += late;
    report.stale += late;
    report.events += needed + counted.late;
    report.live_time += std::chrono::duration<double>{time} * live.size();
    report.virtual_time = counted.ended;
    if (counted.ended > time_max) throw failure{end_of_time(step)};
    began = counted.ended;
    late = counted.late;
  }
  report.job.step = scenario.steps;
}

} // namespace troupe
