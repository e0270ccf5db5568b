// SPDX-License-Identifier: Apache-2.0
// Training jobs of a few lines: most tests look at which replica gave what when, not at a model.
#pragma once

#include "kernels/tensor/random.hpp"
#include "strategies/jobs/training.hpp"
#include "tests/doctest.hpp"
#include "tests/replica_list.hpp"
#include "tests/strategies/refusal.hpp"

#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// The course of a job, as it is seen from outside.
struct course {
  job_report report;
  std::vector<step_record> steps;
  std::vector<std::string> warnings;

  /// How long each step took, in seconds.
  [[nodiscard]] std::vector<double> seconds() const {
    std::vector<double> result;
    for (const auto& step : steps)
      result.push_back(std::chrono::duration<double>(step.ended - step.began).count());
    return result;
  }

  /// Mean seconds of the steps from `first` on, counted from 0.
  [[nodiscard]] double mean_seconds(size_t first = 0) const {
    auto all = seconds();
    double sum = 0;
    for (size_t i = first; i < all.size(); ++i)
      sum += all[i];
    return sum / static_cast<double>(all.size() - first);
  }

  [[nodiscard]] size_t accepted_count() const {
    size_t count = 0;
    for (const auto& step : steps)
      count += step.accepted.size();
    return count;
  }

  [[nodiscard]] size_t stale_count() const {
    size_t count = 0;
    for (const auto& step : steps)
      count += step.stale.size();
    return count;
  }
};

/// Everything that a ledger says, as text.
[[nodiscard]] inline std::string print(const std::vector<step_record>& steps) {
  std::string text;
  auto add = [&text](std::string_view what, const std::vector<contribution>& contributions) {
    for (const auto& one : contributions)
      text
        += fmt::format(" {} {}@{}-{} {} {} {} {}", what, one.replica, one.local_step, one.staleness,
                       one.arrived.count(), one.compute.count(), one.waited.count(), one.loss);
  };
  for (const auto& step : steps) {
    text += fmt::format("{}: {}-{} {}/{}", step.step, step.began.count(), step.ended.count(),
                        step.needed, step.live);
    add("accepted", step.accepted);
    add("stale", step.stale);
    add("cancelled", step.cancelled);
    text += '\n';
  }
  return text;
}

/// Trains, and writes down what happens.
[[nodiscard]] inline course play(strategy& strategy, const sync_replicas_optimizer& optimizer,
                                 const step_function& step, training_options options) {
  course seen;
  options.on_step = [&seen, also = options.on_step](const step_record& record) {
    seen.steps.push_back(record);
    if (also) also(record);
  };
  options.on_warning = [&seen](const std::string& line) { seen.warnings.push_back(line); };
  if (!options.on_failure) options.on_failure = [](const error&) {}; // the report has it
  seen.report = train(strategy, optimizer, step, options);
  return seen;
}

/// Computes `gradient`, which takes as long as the pace says, and gives it.
[[nodiscard]] inline task<apply_outcome> give(replica_context& context,
                                              sync_replicas_optimizer optimizer, variable weights,
                                              troupe::gradient gradient) {
  auto computing = context.compute([gradient](std::stop_token) { return gradient; });
  auto computed = co_await computing;
  std::vector<gradient_and_variable> gradients{{computed, weights}};
  auto applying = optimizer.apply_gradients(context, gradients);
  auto outcome = co_await applying;
  co_return outcome;
}

/// A vector of f64 variables, and replicas that give gradients for it.
struct small_job {
  explicit small_job(const sync_options& sync, uint64_t seed = 0, int64_t size = 1)
    : small_job(world::virtual_time({.seed = seed}), sync, size) {}

  small_job(troupe::world in, const sync_options& sync, int64_t size = 1)
    : world(std::move(in)), strategy(world, {.replicas = sync.total_num_replicas}),
      weights(strategy.make_variable("w", zeros({size}, dtype::f64))),
      optimizer(rules::sgd{.learning_rate = 1}, sync) {}

  /// Trains with steps of nothing but time: their gradients are zero.
  [[nodiscard]] course run_idle(training_options options) {
    auto step = [optimizer = optimizer, weights = weights](replica_context& context) -> task<void> {
      auto giving = give(context, optimizer, weights, zeros(weights.extents(), weights.type()));
      co_await giving;
    };
    return run(step, std::move(options));
  }

  [[nodiscard]] course run(const step_function& step, training_options options) {
    return play(strategy, optimizer, step, std::move(options));
  }

  /// The variable as it is now.
  [[nodiscard]] std::vector<double> values() {
    auto current = strategy.read(weights);
    auto numbers = current.values<double>();
    return {numbers.begin(), numbers.end()};
  }

  troupe::world world;
  parameter_server_strategy strategy;
  variable weights;
  sync_replicas_optimizer optimizer;
};

/// Every replica computes for a second of virtual time.
[[nodiscard]] inline job_time one_second(uint32_t, uint64_t, job_time) {
  return std::chrono::seconds{1};
}

} // namespace troupe::test
