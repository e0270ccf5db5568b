// SPDX-License-Identifier: Apache-2.0
// Goal: where the slow replicas change, a number of backups that is chosen for every step is better
// than any that is fixed. Method: simulations of the same draws; gradients that counted a second.
#include "simulation/logistic_task.hpp"
#include "tests/simulation/target.hpp"

#include <algorithm>

namespace dynamic_backups_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t replicas = 20;

sync_options fixed(uint32_t needed, sync_policy policy) {
  return {needed, replicas, policy};
}

sync_options dynamic(sync_policy policy, double power = 1) {
  auto options = fixed(replicas, policy);
  options.dynamic = dynamic_backups{.gain = gain_model::power, .power = power};
  return options;
}

/// Gradients that counted, for each virtual second.
double gradients_per_second(const sync_options& sync, const computing_time& compute,
                            uint64_t steps) {
  auto report = simulate({.sync = sync, .steps = steps, .compute = compute, .seed = 1});
  REQUIRE_FALSE(report.job.failure);
  return static_cast<double>(report.accepted)
         / std::chrono::duration<double>(report.virtual_time).count();
}

void check_beats_all_fixed(sync_policy policy, const computing_time& compute, uint64_t steps) {
  auto chosen = gradients_per_second(dynamic(policy), compute, steps);
  for (uint32_t needed = 1; needed <= replicas; ++needed) {
    CAPTURE(needed);
    CHECK(chosen > 1.02 * gradients_per_second(fixed(needed, policy), compute, steps));
  }
}

/// Virtual seconds until a noisy logistic regression has come to a loss of 0.56, over some seeds;
/// half of the replicas are slow at a time, and the slow ones change.
double seconds_to_loss(sync_options sync) {
  constexpr uint64_t seeds = 6;
  constexpr double target = 0.56;
  double mean = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    scenario what{.sync = sync, .steps = 130, .seed = seed};
    what.compute
      = distribution::parse("lognormal(1, 0.05) * on_off(0.01, 0.01, 5)").value().times(seed);
    auto task = logistic_task({.seed = seed, .replicas = replicas, .batch = 2});
    what.learning = learning_options{.task = std::make_shared<learning_task>(std::move(task)),
                                     .plan = {.rule = rules::sgd{.learning_rate = 0.3}},
                                     .evaluate_every = 2};
    auto report = simulate(what);
    REQUIRE_FALSE(report.job.failure);
    auto reached = seconds_to(target, report.losses);
    // One that never was there is taken to be there at the end.
    mean += (std::isfinite(reached) ? reached : report.losses.back().seconds) / seeds;
  }
  return mean;
}

computing_time times(const char* expression) {
  return distribution::parse(expression).value().times(1);
}

} // namespace

TEST_SUITE("simulation/dynamic_backups") {
  TEST_CASE("where replicas are slow for a while, choosing beats every fixed number of backups") {
    for (auto policy : {sync_policy::cancel, sync_policy::latest_token})
      check_beats_all_fixed(policy, times("lognormal(1, 0.05) * on_off(0.003, 0.01, 5)"), 1000);
  }

  TEST_CASE("where a third is slow in the middle of a run, choosing beats every fixed number") {
    auto noise = times("lognormal(1, 0.05)");
    auto compute = [noise](uint32_t replica, uint64_t iteration) {
      auto is_slow = replica < 7 && iteration >= 75 && iteration < 125;
      return noise(replica, iteration) * (is_slow ? 8 : 1);
    };
    for (auto policy : {sync_policy::cancel, sync_policy::latest_token})
      check_beats_all_fixed(policy, compute, 600);
  }

  TEST_CASE("where nothing changes, choosing is nearly as good as the best fixed number") {
    for (auto policy : {sync_policy::cancel, sync_policy::latest_token})
      for (const auto* expression :
           {"lognormal(1, 0.05)", "lognormal(1, 0.05) slow={1,2,3}*4", "0.5 + exponential(0.5)"}) {
        CAPTURE(expression);
        CAPTURE(to_string(policy));
        double best = 0;
        for (uint32_t needed = 1; needed <= replicas; ++needed)
          best
            = std::max(best, gradients_per_second(fixed(needed, policy), times(expression), 250));
        CHECK(gradients_per_second(dynamic(policy), times(expression), 250) > 0.85 * best);
      }
  }

  TEST_CASE("the less a further gradient is worth, the fewer are waited for") {
    double before = replicas + 1;
    for (double power : {2.0, 1.0, 0.5, 0.1}) {
      auto report = simulate({.sync = dynamic(sync_policy::cancel, power),
                              .steps = 300,
                              .compute = times("0.2 + exponential(1)"),
                              .seed = 1});
      double needed = 0;
      for (auto [count, steps] : report.needed)
        needed += static_cast<double>(count * steps) / 300;
      CHECK(needed < before);
      before = needed;
    }
  }

  TEST_CASE(
    "with the curvature that it estimates, the loss falls faster than with a fixed number") {
    auto measured = dynamic(sync_policy::cancel);
    measured.dynamic = dynamic_backups{.curvature = 0};
    auto chosen = seconds_to_loss(measured);
    for (uint32_t needed : {3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 12U, 14U, 16U, 18U, 20U}) {
      auto seconds = seconds_to_loss(fixed(needed, sync_policy::cancel));
      INFO(seconds, " s, chosen: ", chosen, " s");
      CHECK(chosen < seconds);
    }
  }
}

} // namespace dynamic_backups_test
