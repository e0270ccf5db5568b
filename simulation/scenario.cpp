// SPDX-License-Identifier: Apache-2.0
// What came of a simulated job.
#include "simulation/scenario.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/simulated_job.hpp"

#include <limits>
#include <numeric>

namespace troupe {

namespace {

// The chief finds a stall when nobody is left to compute and, for those who live, no token.
std::optional<stall_report> stall_of(const scenario& scenario, const job_report& job) {
  if (!job.failure || job.failure->code != errc::stalled) return std::nullopt;
  auto gone = scenario.dead_replicas.size() + job.lost.size();
  auto live = scenario.sync.total_num_replicas - static_cast<uint32_t>(gone);
  return stall_report{.step = job.step + 1,
                      .live = live,
                      .needed = scenario.sync.replicas_to_aggregate,
                      .tokens = live == 0 ? scenario.sync.first_tokens() : 0,
                      .reason = job.failure->message};
}

} // namespace

double scenario_report::mean_step_seconds(size_t first) const {
  if (first >= step_times.size()) return std::numeric_limits<double>::quiet_NaN();
  auto begin = step_times.begin() + static_cast<ptrdiff_t>(first);
  auto sum = std::accumulate(begin, step_times.end(), job_time{0});
  return seconds(sum) / static_cast<double>(step_times.end() - begin);
}

double scenario_report::drop_fraction() const {
  auto all = accepted + stale + cancelled;
  return all == 0 ? 0 : static_cast<double>(stale + cancelled) / static_cast<double>(all);
}

scenario_report simulate(const scenario& scenario) {
  scenario_report report;
  simulated_job{scenario, report}.run();
  report.stalled = stall_of(scenario, report.job);
  return report;
}

} // namespace troupe
