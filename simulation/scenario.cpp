// SPDX-License-Identifier: Apache-2.0
// Choosing the engine of a scenario, and figures of its report.
#include "simulation/scenario.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "simulation/cancelled_steps.hpp"
#include "simulation/collective_job.hpp"
#include "simulation/direct_engine.hpp"
#include "simulation/simulated_job.hpp"

#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <set>

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

std::vector<uint32_t> live_replicas(const scenario& scenario) {
  std::vector<uint32_t> live;
  std::set<uint32_t> dead{scenario.dead_replicas.begin(), scenario.dead_replicas.end()};
  for (uint32_t replica = 0; replica < scenario.sync.total_num_replicas; ++replica)
    if (!dead.contains(replica)) live.push_back(replica);
  return live;
}

std::string_view reason_for_actors(const scenario& scenario) {
  if (scenario.network) return "a network";
  if (!scenario.faults.is_empty()) return "faults";
  if (scenario.learning) return "something to learn";
  if (scenario.replicate_owners > 1) return "owners with mirrors";
  if (scenario.deadline < job_time::max()) return "a deadline";
  return {};
}

scenario_report simulate(const scenario& scenario) {
  auto reason = reason_for_actors(scenario);
  if (scenario.engine == simulation_engine::direct && !reason.empty())
    throw failure{{errc::invalid_argument,
                   fmt::format("the direct engine cannot simulate {}; take the actors", reason)}};
  if (!scenario.collective && scenario.network && scenario.network->slowed)
    throw failure{{errc::invalid_argument,
                   "a single slow link is simulated in collectives only; leave it out, or name the "
                   "collective"}};
  for (auto dead : scenario.dead_replicas)
    if (dead >= scenario.sync.total_num_replicas)
      throw failure{{errc::invalid_argument,
                     fmt::format("dead_replicas names replica {}, but there are {} replicas", dead,
                                 scenario.sync.total_num_replicas)}};
  scenario_report report;
  if (scenario.collective)
    collective_job{scenario, report}.run();
  else if (!reason.empty() || scenario.engine == simulation_engine::actors)
    simulated_job{scenario, report}.run();
  else if (counts_cancelled_steps(scenario))
    count_cancelled_steps(scenario, report);
  else
    direct_engine{scenario, report}.run();
  return report;
}

} // namespace troupe
