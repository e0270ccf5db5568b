// SPDX-License-Identifier: Apache-2.0
// The figures of an experiment's plots, out of its steps and messages.
#include "simulation/reports/run_profile.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

constexpr size_t even_points = 200;
constexpr int points_for_each_decade = 20; // of the share that takes longer

// Where an update takes few gradients, as asynchronous ones do, a replica's gradient sees many.
step_window window_of(const experiment& experiment) {
  auto needed = uint64_t{experiment.sync.replicas_to_aggregate};
  auto updates = std::max<uint64_t>(experiment.sync.total_num_replicas / needed, 1);
  auto count = std::min(run_profile::window_steps_max, run_profile::window_gradients_max * updates);
  count = std::clamp<uint64_t>(count, 1, std::max<uint64_t>(run_profile::cells_max / needed, 1));
  return {experiment.warm_up + 1, std::min(count, experiment.steps - experiment.warm_up)};
}

} // namespace

std::vector<share_of_steps> distribution_of(std::vector<double> step_seconds) {
  auto count = static_cast<double>(step_seconds.size());
  std::vector<share_of_steps> points;
  if (step_seconds.empty()) return points;
  sorted_values sorted{std::move(step_seconds)};
  if (sorted.values().size() <= 2 * even_points) {
    points.push_back({0, sorted.values().front()});
    for (double value : sorted.values())
      points.push_back({static_cast<double>(points.size()) / count, value});
    return points;
  }
  for (size_t i = 0; i < even_points; ++i) {
    auto share = static_cast<double>(i) / even_points;
    points.push_back({share, sorted.quantile(share)});
  }
  for (int i = 1;; ++i) {
    auto longer = std::pow(10, -1.0 * i / points_for_each_decade) / even_points;
    if (longer <= 1 / count) break;
    points.push_back({1 - longer, sorted.quantile(1 - longer)});
  }
  points.push_back({1, sorted.quantile(1)});
  return points;
}

run_profile::run_profile(const experiment& experiment, bool with_spans)
  : warm_up_(experiment.warm_up),
    work_(experiment.sync.total_num_replicas, experiment.sync.policy) {
  if (with_spans) spans_.emplace(experiment.sync.total_num_replicas, window_of(experiment));
}

void run_profile::add(const step_record& step) {
  // A job that goes on from a snapshot repeats numbers of steps; only a new run goes back in time.
  if (step.began < last_ended_) is_first_run_ = false;
  last_ended_ = step.ended;
  if (spans_ && is_first_run_) spans_->add(step);
  if (step.step <= warm_up_) return;
  step_seconds_.push_back(seconds(step.ended - step.began));
  arrivals_.add(step);
  work_.add(step);
}

void run_profile::add(const delivery& delivery) {
  if (spans_ && is_first_run_) spans_->add(delivery);
}

profile_figures run_profile::figures() {
  profile_figures figures{.arrivals = arrivals_.figures(),
                          .work = work_.totals(),
                          .replicas = work_.replicas(),
                          .spans = std::move(spans_)};
  sorted_values sorted{step_seconds_};
  figures.step_p10 = sorted.quantile(0.1);
  figures.step_p50 = sorted.quantile(0.5);
  figures.step_p90 = sorted.quantile(0.9);
  figures.step_times = distribution_of(std::move(step_seconds_));
  return figures;
}

} // namespace troupe
