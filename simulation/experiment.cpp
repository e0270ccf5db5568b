// SPDX-License-Identifier: Apache-2.0
// Running a scenario with several seeds, and adding up the reports.
#include "simulation/experiment.hpp"

#include "actors/policies/sync_policy.hpp"
#include "actors/recording/seconds.hpp"
#include "simulation/collective_job.hpp"
#include "simulation/distributions/trace_resampling.hpp"
#include "simulation/ledger_hash.hpp"
#include "simulation/on_threads.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

double ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

// The mean of counted values.
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
  result.hashes = experiment.hashes;
  result.collective = experiment.collective;
  result.replicas_per_host = experiment.replicas_per_host;
  if (experiment.network) result.network = experiment.network(seed);
  result.faults = experiment.faults;
  result.ask_again_after = experiment.ask_again_after;
  if (!experiment.faults.is_empty()) result.deadline = fault_deadline;
  if (experiment.learning) result.learning = experiment.learning(seed);
  result.dead_replicas.resize(experiment.dead);
  std::iota(result.dead_replicas.begin(), result.dead_replicas.end(), 0U);
  return result;
}

void add_stall(experiment_report& report, const stall_report& stalled, uint64_t seed) {
  if (++report.stalled_runs > 1) return;
  report.stalled = stalled;
  report.stalled_seed = seed;
}

void add(experiment_report& report, const scenario_report& run, uint64_t seed) {
  report.steps += run.step_times.size();
  report.accepted += run.accepted;
  report.stale += run.stale;
  report.cancelled += run.cancelled;
  for (auto [staleness, count] : run.staleness_counts)
    report.staleness_counts[staleness] += count;
  for (auto [needed, count] : run.needed)
    report.needed[needed] += count;
  report.wasted_replica_seconds += seconds(run.wasted);
  report.live_replica_seconds += run.live_time.count();
  report.virtual_seconds += seconds(run.virtual_time);
  report.events += run.events;
  report.lost += run.lost;
  report.restarts += run.restarts;
  report.undone_steps += run.undone_steps;
  report.undone_accepted += run.undone_accepted;
  report.down_seconds += seconds(run.down);
  for (const auto& [name, count] : run.probes)
    report.probes[name] += count;
  if (run.stalled) add_stall(report, *run.stalled, seed);
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

// The seconds of the steps after the warm-up.
std::vector<double> warm_steps(const scenario_report& run, uint64_t warm_up) {
  std::vector<double> times;
  for (size_t i = warm_up; i < run.step_times.size(); ++i)
    times.push_back(seconds(run.step_times[i]));
  return times;
}

// How many times the measured draws have been used. Draws that repeat them make nothing surer.
std::optional<trace_use> trace_use_of(const experiment& experiment,
                                      const experiment_report& report) {
  auto trace = experiment.compute.shortest_trace();
  if (!trace) return std::nullopt;
  auto gradients = static_cast<double>(report.accepted + report.stale + report.cancelled);
  auto draws = gradients * experiment.local_sgd.local_steps;
  auto replicas = experiment.sync.total_num_replicas;
  auto repeats = trace->table->repeats(draws, replicas);
  auto is_exceeded = repeats > 1 || replicas > trace->table->seconds.size();
  return trace_use{std::move(*trace), repeats, is_exceeded};
}

double repeats_of(const experiment_report& report) {
  return report.trace ? std::max(1.0, report.trace->repeats) : 1;
}

// Simulated steps that tell as much as one. Blocks of a finite trace vary less about its mean than
// the trace's mean does about the truth.
double steps_for_one(const experiment_report& report) {
  auto repeats = repeats_of(report);
  if (repeats == 1) return 1;
  auto draws = report.trace->trace.table->draw_count();
  auto block = trace_resampling::block_length(draws);
  return repeats * static_cast<double>(draws)
         / static_cast<double>(draws > block ? draws - block : 1);
}

// A trace holds no more independent values than it has blocks.
uint64_t degrees_of_freedom(const experiment_report& report) {
  auto freedom = error_of(report.batches).freedom;
  if (repeats_of(report) > 1) {
    auto draws = report.trace->trace.table->draw_count();
    freedom = std::min(freedom, draws / trace_resampling::block_length(draws) - 1);
  }
  return std::max<uint64_t>(freedom, 1);
}

step_time_figures figures_of(std::span<const std::vector<double>> runs,
                             const batches_of_runs& batches, double repeats) {
  std::vector<double> times;
  for (const auto& run : runs)
    times.insert(times.end(), run.begin(), run.end());
  auto mean = estimate_of(times).mean;
  sorted_values sorted{std::move(times)};
  auto range = [&](double fraction) { return range_of_quantile(runs, sorted, fraction, repeats); };
  return {.mean = mean,
          .standard_error = std::sqrt(repeats) * error_of(batches).standard_error,
          .p50 = sorted.quantile(0.5),
          .p90 = sorted.quantile(0.9),
          .p99 = sorted.quantile(0.99),
          .p999 = sorted.values().size() < steps_for_p999 ? std::numeric_limits<double>::quiet_NaN()
                                                          : sorted.quantile(0.999),
          .max = sorted.quantile(1),
          .p50_range = range(0.5),
          .p90_range = range(0.9),
          .p99_range = range(0.99)};
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

double experiment_report::mean_staleness() const {
  return mean_of(staleness_counts);
}

double experiment_report::half_width() const {
  if (error_of(batches).freedom == 0) return std::numeric_limits<double>::quiet_NaN();
  return student_quantile(degrees_of_freedom(*this)) * step_time.standard_error;
}

double experiment_report::mean_needed() const {
  return mean_of(needed);
}

bool experiment_report::is_whole() const {
  return !stalled && restarts == 0 && timed_steps > 0;
}

double experiment_report::updates_per_second() const {
  return ratio(static_cast<double>(steps - undone_steps), virtual_seconds);
}

double experiment_report::gradients_per_second() const {
  return ratio(static_cast<double>(accepted - undone_accepted), virtual_seconds);
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

bool has_step_variance(const experiment& experiment) {
  const auto& sync = experiment.sync;
  if (sync.dynamic) return true;
  const auto policy = traits_of(sync.policy);
  // A step is long if all replicas are late that it can do without, and one more.
  auto live = sync.total_num_replicas - experiment.dead;
  auto late = live > sync.replicas_to_aggregate ? live - sync.replicas_to_aggregate + 1 : 1;
  if (policy.is_asynchronous() && policy.repeats) late = policy.keeps_pace() ? 1 : live;
  const auto index = experiment.compute.tail_index(late);
  if (policy.cancels() || late == 1 || std::isinf(index)) return index > 2;
  // A replica that is not told to stop may have been late for steps before: the time that is left
  // of a long one has a tail that is heavier by 1.
  const auto of_one = experiment.compute.tail_index();
  return std::min(index, of_one + (late - 1) * (of_one - 1)) > 2;
}

experiment_report run(const experiment& experiment) {
  experiment_report report;
  ledger_hash hash;
  std::vector<std::vector<double>> times; // of each run
  auto began = std::chrono::steady_clock::now();
  auto seed = experiment.seed;
  for (const auto& scenario_run : simulate_all(experiment)) {
    add(report, scenario_run, seed++);
    add_learnt(report, experiment, scenario_run);
    hash.add(scenario_run.log_hash);
    auto warm = warm_steps(scenario_run, experiment.warm_up);
    report.batches.push_back(batch_means(warm, short_batch_count));
    report.timed_steps += warm.size();
    times.push_back(std::move(warm));
  }
  report.wall_seconds = seconds(std::chrono::steady_clock::now() - began);
  report.log_hash = hash.value();
  report.trace = trace_use_of(experiment, report);
  report.step_time = figures_of(times, report.batches, steps_for_one(report));
  return report;
}

interval_estimate widened(const interval_estimate& difference, const experiment_report& report,
                          const experiment_report& baseline) {
  auto repeats = std::max(steps_for_one(report), steps_for_one(baseline));
  if (repeats == 1 || difference.freedom == 0) return difference;
  auto result = difference;
  result.freedom
    = std::min({difference.freedom, degrees_of_freedom(report), degrees_of_freedom(baseline)});
  result.standard_error *= std::sqrt(repeats);
  auto half = student_quantile(result.freedom) * result.standard_error;
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

std::optional<interval_estimate> step_time_difference(const experiment_report& report,
                                                      const experiment_report& baseline) {
  auto is_alike
    = are_alike(report.batches, baseline.batches) && report.timed_steps == baseline.timed_steps;
  if (!is_alike) return std::nullopt;
  auto difference = paired_difference(report.batches, baseline.batches);
  if (difference.freedom == 0) return std::nullopt;
  return widened(difference, report, baseline);
}

} // namespace troupe
