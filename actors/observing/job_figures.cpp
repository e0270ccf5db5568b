// SPDX-License-Identifier: Apache-2.0
// Figures of a job, added up step by step.
#include "actors/observing/job_figures.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/recording/step_figures.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

void add_all(job_figures& figures, const std::vector<contribution>& gradients,
             uint64_t verdict_counts::*verdict) {
  figures.gradients.*verdict += gradients.size();
  for (const auto& gradient : gradients) {
    auto& replica = figures.replicas[gradient.replica];
    replica.gradients.*verdict += 1;
    replica.computing += gradient.compute;
    replica.waiting += gradient.waited;
  }
}

// A record has late gradients after those that were in time; and a cancelled one has no staleness.
void note_staleness(job_figures& figures, const std::vector<contribution>& arrived) {
  for (const auto& gradient : arrived) {
    auto& replica = figures.replicas[gradient.replica];
    if (gradient.arrived < replica.arrived) continue;
    replica.arrived = gradient.arrived;
    replica.staleness = gradient.staleness;
  }
}

} // namespace

void job_figures::expect(uint32_t count) {
  for (uint32_t replica = 0; replica < count; ++replica)
    replicas.try_emplace(replica);
}

void job_figures::add(const step_record& record) {
  auto step_seconds = seconds(step_duration(record));
  auto bound = std::ranges::lower_bound(step_seconds_bounds, step_seconds);
  ++step_seconds_counts[static_cast<size_t>(bound - step_seconds_bounds.begin())];
  step_seconds_total += step_seconds;
  step = record.step;
  ++steps;
  loss = mean_loss(record);
  examples += accepted_examples(record);
  add_all(*this, record.accepted, &verdict_counts::accepted);
  add_all(*this, record.stale, &verdict_counts::stale);
  add_all(*this, record.cancelled, &verdict_counts::cancelled);
  note_staleness(*this, record.accepted);
  note_staleness(*this, record.stale);
}

} // namespace troupe
