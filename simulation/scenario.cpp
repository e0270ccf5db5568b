// SPDX-License-Identifier: Apache-2.0
// What came of a simulated job.
#include "simulation/scenario.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/simulated_job.hpp"

#include <limits>
#include <numeric>

namespace troupe {

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
  return report;
}

} // namespace troupe
