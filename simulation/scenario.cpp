// SPDX-License-Identifier: Apache-2.0
// Simulating a job: the production cast, a variable of one element, and a virtual clock.
#include "simulation/scenario.hpp"

#include "strategies/training.hpp"

#include <limits>
#include <numeric>

namespace troupe {

namespace {

double seconds(job_time time) {
  return std::chrono::duration<double>(time).count();
}

step_function compute_nothing(const sync_replicas_optimizer& optimizer, const variable& only) {
  auto gradient = zeros(only.extents());
  return [=](replica_context& context) -> task<void> {
    auto computing = context.compute([](std::stop_token) { return 0; });
    co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, only);
    co_await applying;
  };
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
  sync_replicas_optimizer optimizer{rules::sgd{}, scenario.sync};
  auto world = world::virtual_time({.seed = scenario.seed});
  parameter_server_strategy strategy{world, {.replicas = scenario.sync.total_num_replicas}};
  auto only = strategy.make_variable("only", zeros({1}));
  scenario_report report;
  training_options options;
  options.steps = scenario.steps;
  options.deadline = job_time::max();
  options.dead_replicas = scenario.dead_replicas;
  options.pace = [&](uint32_t replica, uint64_t iteration, job_time) {
    return scenario.compute(replica, iteration);
  };
  options.on_step = [&](const step_record& step) {
    report.step_times.push_back(step.ended - step.began);
    report.accepted += step.accepted.size();
    report.stale += step.stale.size();
    report.cancelled += step.cancelled.size();
  };
  report.job = train(strategy, optimizer, compute_nothing(optimizer, only), options);
  return report;
}

} // namespace troupe
