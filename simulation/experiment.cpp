// SPDX-License-Identifier: Apache-2.0
// Running a scenario with one seed after the other, and adding up.
#include "simulation/experiment.hpp"

#include "actors/recording/seconds.hpp"
#include "simulation/collective_job.hpp"
#include "simulation/ledger_hash.hpp"
#include "simulation/on_threads.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

// Ends a job that cannot end, because the node that it waits for is frozen for good.
constexpr auto fault_deadline = std::chrono::seconds{100'000};

double ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

// Of what was counted.
double mean_of(const std::map<uint64_t, uint64_t>& counts) {
  double sum = 0;
  double total = 0;
  for (auto [value, count] : counts) {
    sum += static_cast<double>(value) * static_cast<double>(count);
    total += static_cast<double>(count);
  }
  return ratio(sum, total);
}

scenario scenario_of(const experiment& experiment, uint64_t seed) {
  scenario result{.sync = experiment.sync,
                  .steps = experiment.steps,
                  .compute = experiment.compute.times(seed),
                  .seed = seed,
                  .local_sgd = experiment.local_sgd,
                  .on_step = experiment.on_step,
                  .on_delivery = experiment.on_delivery};
  result.engine = experiment.engine;
  result.collective = experiment.collective;
  if (experiment.network) result.network = experiment.network(seed);
  result.faults = experiment.faults;
  result.ask_again_after = experiment.ask_again_after;
  if (!experiment.faults.is_empty()) result.deadline = fault_deadline;
  if (experiment.learning) result.learning = experiment.learning(seed);
  result.dead_replicas.resize(experiment.dead);
  std::iota(result.dead_replicas.begin(), result.dead_replicas.end(), 0U);
  return result;
}

void add(experiment_report& report, const scenario_report& run) {
  report.steps += run.step_times.size();
  report.accepted += run.accepted;
  report.stale += run.stale;
  report.cancelled += run.cancelled;
  for (auto [lag, count] : run.lags)
    report.lags[lag] += count;
  for (auto [needed, count] : run.needed)
    report.needed[needed] += count;
  report.wasted_replica_seconds += seconds(run.wasted);
  report.virtual_seconds += seconds(run.virtual_time);
  report.events += run.events;
  report.lost += run.lost;
  report.restarts += run.restarts;
  for (const auto& [name, count] : run.probes)
    report.probes[name] += count;
  if (!report.stalled) report.stalled = run.stalled;
}

// Means over runs; those that a run does not have become NaN.
void add_learnt(experiment_report& report, const experiment& experiment,
                const scenario_report& run) {
  if (run.losses.empty()) return;
  if (!report.learnt) report.learnt = learning_figures{.curve = run.losses};
  auto share = 1.0 / static_cast<double>(experiment.runs);
  const auto& last = run.losses.back();
  report.learnt->loss += share * last.loss;
  report.learnt->slow_loss += share * last.slow_loss;
  report.learnt->fast_loss += share * last.fast_loss;
  report.learnt->seconds_to_target += share * seconds_to(experiment.target_loss, run.losses);
}

// What is left of a run when it has warmed up.
std::vector<double> warm_steps(const scenario_report& run, uint64_t warm_up) {
  std::vector<double> times;
  for (size_t i = warm_up; i < run.step_times.size(); ++i)
    times.push_back(seconds(run.step_times[i]));
  return times;
}

step_time_figures figures_of(std::vector<double> times, std::span<const double> batches) {
  auto mean = estimate_of(times).mean;
  auto error = estimate_of(batches).standard_error;
  sorted_values sorted{std::move(times)};
  return {mean,
          error,
          sorted.quantile(0.5),
          sorted.quantile(0.9),
          sorted.quantile(0.99),
          sorted.quantile(1)};
}

std::vector<scenario_report> simulate_all(const experiment& experiment) {
  std::vector<scenario_report> reports(experiment.runs);
  auto is_watched = experiment.on_step || experiment.on_delivery;
  auto threads = is_watched ? 1 : experiment.threads;
  for_each_on_threads(reports.size(), threads, [&](size_t i) {
    reports[i] = simulate(scenario_of(experiment, experiment.seed + i));
  });
  return reports;
}

} // namespace

double experiment_report::drop_fraction() const {
  auto dropped = static_cast<double>(stale + cancelled);
  return ratio(dropped, dropped + static_cast<double>(accepted));
}

double experiment_report::mean_lag() const {
  return mean_of(lags);
}

double experiment_report::mean_needed() const {
  return mean_of(needed);
}

double experiment_report::updates_per_second() const {
  return ratio(static_cast<double>(steps), virtual_seconds);
}

double experiment_report::gradients_per_second() const {
  return ratio(static_cast<double>(accepted), virtual_seconds);
}

double experiment_report::events_per_second() const {
  return ratio(static_cast<double>(events), wall_seconds);
}

std::string_view reason_for_actors(const experiment& experiment) {
  return reason_for_actors(scenario_of(experiment, experiment.seed));
}

std::string_view reason_against_collectives(const experiment& experiment) {
  return reason_against_collectives(scenario_of(experiment, experiment.seed));
}

experiment_report run(const experiment& experiment) {
  experiment_report report;
  ledger_hash hash;
  std::vector<double> times;
  auto began = std::chrono::steady_clock::now();
  for (const auto& of_run : simulate_all(experiment)) {
    add(report, of_run);
    add_learnt(report, experiment, of_run);
    hash.add(of_run.log_hash);
    auto warm = warm_steps(of_run, experiment.warm_up);
    auto batches = batch_means(warm);
    report.batches.insert(report.batches.end(), batches.begin(), batches.end());
    times.insert(times.end(), warm.begin(), warm.end());
  }
  report.wall_seconds = seconds(std::chrono::steady_clock::now() - began);
  report.log_hash = hash.value();
  report.step_time = figures_of(std::move(times), report.batches);
  return report;
}

std::optional<interval_estimate> step_time_difference(const experiment_report& report,
                                                      const experiment_report& baseline) {
  if (report.batches.size() != baseline.batches.size() || report.batches.size() < 2)
    return std::nullopt;
  return paired_difference(report.batches, baseline.batches);
}

} // namespace troupe
