// SPDX-License-Identifier: Apache-2.0
// Replays a run, as it was and changed, and predicts the changed one.
#include "tools/replay/changed_run.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "simulation/on_threads.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numbers>
#include <span>
#include <thread>

namespace troupe {

namespace {

constexpr size_t resampled_runs = 20;

replayed_steps steps_of(const recorded_run& run, const replay_options& options) {
  auto report = simulate(replay_of(run, options));
  return {.seconds = mapped(report.step_times, [](auto time) { return seconds(time); }),
          .drop_fraction = report.drop_fraction(),
          .wasted_replica_seconds = seconds(report.wasted),
          .stalled = report.stalled};
}

sync_options changed_sync(const run_folder& folder, const replay_change& change) {
  auto sync = folder.sync;
  sync.total_num_replicas
    = static_cast<uint32_t>(change.replicas.value_or(sync.total_num_replicas));
  sync.replicas_to_aggregate
    = static_cast<uint32_t>(change.aggregate.value_or(sync.replicas_to_aggregate));
  sync.policy = change.policy.value_or(sync.policy);
  if (!traits_of(sync.policy).keeps_pace()) sync.slack = 0; // that of the recorded policy
  if (auto valid = sync.validate(); !valid) throw failure{valid.error()};
  return sync;
}

// Resampled runs with the change differ by chance, and by the times that were estimated. A real run
// differs by chance as much again.
std::optional<interval_estimate> prediction_of(const run_folder& folder,
                                               const replay_options& options, double mean,
                                               const std::function<bool()>& is_wanted) {
  if (folder.run.step_count() < 2 * resampled_blocks) return std::nullopt;
  std::vector<double> means(resampled_runs);
  for_each_on_threads(means.size(), std::max(1U, std::thread::hardware_concurrency()),
                      [&](size_t i) {
                        if (is_wanted && !is_wanted())
                          throw failure{{errc::cancelled, "the replays were not wanted any more"}};
                        auto run = resampled(folder.run, folder.seed + i);
                        means[i] = estimate_of(steps_of(run, options).seconds).mean;
                      });
  auto error = estimate_of(means).standard_error * std::sqrt(static_cast<double>(means.size()));
  if (!std::isfinite(error)) return std::nullopt;
  auto half_width = student_quantile(resampled_blocks - 1) * std::numbers::sqrt2 * error;
  return interval_estimate{mean, error, std::max(0.0, mean - half_width), mean + half_width,
                           means.size()};
}

double difference_of_halves(std::span<const double> seconds) {
  auto half = seconds.size() / 2;
  auto difference = estimate_of(seconds.subspan(half)).mean - estimate_of(seconds.first(half)).mean;
  return difference / estimate_of(seconds).mean;
}

} // namespace

std::string option_text(const replay_change& change) {
  std::vector<std::string> options;
  if (change.replicas) options.push_back(fmt::format("--replicas {}", *change.replicas));
  if (change.aggregate) options.push_back(fmt::format("--aggregate {}", *change.aggregate));
  if (change.policy) options.push_back(fmt::format("--policy {}", to_string(*change.policy)));
  if (!change.repaired.empty())
    options.push_back(fmt::format("--repair {}", fmt::join(change.repaired, ",")));
  return fmt::format("{}", fmt::join(options, " "));
}

replay_report replay(const run_folder& folder, const replay_change& change,
                     const std::function<bool()>& is_wanted) {
  replay_report report{.recorded_sync = folder.sync,
                       .changed_sync = changed_sync(folder, change),
                       .recorded = folder.run.step_seconds()};
  if (estimate_of(report.recorded).mean == 0)
    throw failure{
      {errc::failed_precondition,
       fmt::format("{}: its steps take no time; there is nothing to compare", folder.ledger)}};
  report.unchanged = steps_of(folder.run, {.sync = folder.sync, .seed = folder.seed});
  if (report.unchanged.seconds.empty()) {
    auto why = report.unchanged.stalled ? report.unchanged.stalled->reason : "it has no steps";
    throw failure{
      {errc::stalled, fmt::format("{}: the ledger does not say enough to replay a single step: {}",
                                  folder.ledger, why)}};
  }
  report.error = error_of(report.recorded, report.unchanged.seconds);
  report.difference_of_halves = difference_of_halves(report.recorded);
  if (change.is_none()) return report;
  replay_options options{
    .sync = report.changed_sync, .repaired = change.repaired, .seed = folder.seed};
  report.changed = steps_of(folder.run, options);
  if (report.changed->seconds.empty()) return report;
  auto mean = estimate_of(report.changed->seconds).mean;
  report.cut = cut_estimate_of(folder.run, options);
  const auto& sync = report.changed_sync;
  report.is_lower_bound
    = sync.replicas_to_aggregate + report.cut.unknown.size() > sync.total_num_replicas;
  if (!report.is_lower_bound) report.prediction = prediction_of(folder, options, mean, is_wanted);
  if (report.cut.beyond == 0) return report;
  options.no_longer_than_seen = true;
  report.at_least = estimate_of(steps_of(folder.run, options).seconds).mean;
  return report;
}

} // namespace troupe
