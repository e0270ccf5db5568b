// SPDX-License-Identifier: Apache-2.0
// Selecting instead of queueing.
#include "simulation/cancelled_steps.hpp"

#include "messages/failure.hpp"
#include "simulation/replica_draws.hpp"
#include "simulation/step_book.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace troupe {

namespace {

std::vector<uint32_t> live_replicas(const scenario& what) {
  std::vector<uint32_t> live;
  std::set<uint32_t> dead{what.dead_replicas.begin(), what.dead_replicas.end()};
  for (uint32_t replica = 0; replica < what.sync.total_num_replicas; ++replica)
    if (!dead.contains(replica)) live.push_back(replica);
  return live;
}

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

bool counts_cancelled_steps(const scenario& what) {
  const auto& sync = what.sync;
  return traits_of(sync.policy).cancels() && !sync.dynamic && !what.hashes && !what.on_step
         && !what.update && what.local_sgd.local_steps == 1
         && live_replicas(what).size() >= sync.replicas_to_aggregate;
}

void count_cancelled_steps(const scenario& what, scenario_report& report) {
  value_or_throw(what.sync.validate());
  auto needed = what.sync.replicas_to_aggregate;
  auto live = live_replicas(what);
  replica_draws draws{what};
  std::vector<job_time> ends(live.size());
  job_time began{0};
  uint64_t late = 0; // of the step before: the ledger of the next one has them
  for (uint64_t step = 1; step <= what.steps; ++step) {
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
  report.job.step = what.steps;
}

} // namespace troupe
