// SPDX-License-Identifier: Apache-2.0
// Goal: the asynchronous relatives take the time, and have the staleness, that theory says, and a
// replica that dies holds up no other. Method: closed forms and event simulations written apart
// from this code, within four standard errors; what is exact, exactly.
#include "messages/mapped.hpp"
#include "tests/simulation/target.hpp"

#include <algorithm>
#include <numeric>

namespace asynchronous_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr auto k_async = sync_policy::k_async;
constexpr auto k_batch_async = sync_policy::k_batch_async;

sync_options asynchronous(uint32_t gradients, uint32_t replicas, sync_policy policy,
                          uint64_t slack = 0) {
  sync_options options{gradients, replicas, policy};
  options.slack = slack;
  return options;
}

/// The mean staleness of each step's gradients, but for the first twentieth of the steps.
std::vector<double> staleness_of(const target_run& run) {
  std::vector<double> result;
  auto all = run.records();
  for (size_t i = all.size() / 20; i < all.size(); ++i) {
    double sum = 0;
    for (const auto& gradient : all[i].accepted)
      sum += static_cast<double>(gradient.staleness);
    result.push_back(sum / static_cast<double>(all[i].accepted.size()));
  }
  return result;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Sums of `count` neighbours: under ssp, the time in which every replica gives a gradient.
std::vector<double> sums_of(const std::vector<double>& values, size_t count) {
  std::vector<double> result;
  for (size_t i = 0; i + count <= values.size(); i += count)
    result.push_back(std::accumulate(values.begin() + static_cast<ptrdiff_t>(i),
                                     values.begin() + static_cast<ptrdiff_t>(i + count), 0.0));
  return result;
}

struct slack_case {
  uint32_t replicas;
  uint64_t slack;
  double mean;      ///< Mean time of one clock.
  double error = 0; ///< Error of `mean`, if it was simulated.
  uint64_t clocks = 800;
};

struct averaging_case {
  double share; ///< The averaging's time over a gradient's time.
  uint32_t local_steps;
  double speed_up; ///< Speed of many local steps over that of one.
};

constexpr averaging_case averaging_cases[]
  = {{.5, 10, 1.428571}, {.9, 10, 1.743119}, {2, 10, 2.5}, {4, 100, 4.807692}};

struct ratio_case {
  uint32_t replicas;
  const char* compute;
  double ratio;
};

struct local_case {
  uint32_t replicas;
  uint32_t local_steps;
  double mean; ///< Mean time of a local step.
};

/// How long a round of local steps takes, on average.
estimate round_seconds(const sync_options& sync, const char* compute, local_sgd_options local,
                       uint64_t rounds) {
  scenario what{.sync = sync, .steps = rounds, .seed = 1, .local_sgd = local};
  what.compute = distribution::parse(compute).value().times(1);
  auto report = simulate(what);
  std::vector<double> seconds;
  for (size_t i = 1; i < report.step_times.size(); ++i)
    seconds.push_back(std::chrono::duration<double>(report.step_times[i]).count());
  return estimate_of_series(seconds);
}

} // namespace

TEST_SUITE("simulation/asynchronous") {
  TEST_CASE("an update of the next gradients of any replicas takes K / P of a gradient") {
    const std::pair<const char*, double> cases[]
      = {{"exponential(1)", .1}, {"1 + exponential(1)", .2}, {"pareto(1, 3)", .15}};
    for (auto [compute, mean] : cases) {
      target_run run{
        .sync = asynchronous(10, 100, k_batch_async), .compute = compute, .steps = 2000};
      check_mean(estimate_of_series(run.step_seconds()), mean);
    }
  }

  TEST_CASE("the next gradients of any replicas are (P - 1) / K updates late, on average") {
    for (uint32_t gradients : {1U, 2U, 4U, 8U})
      for (const auto* compute : {"exponential(1)", "pareto(1, 3)", "constant(1)"}) {
        CAPTURE(gradients);
        CAPTURE(compute);
        target_run run{
          .sync = asynchronous(gradients, 8, k_batch_async), .compute = compute, .steps = 2000};
        // The mean may differ only by the gradients that are on their way at both ends.
        CHECK(std::abs(mean_of(staleness_of(run)) - 7.0 / gradients) <= 8.0 * 8 / gradients / 1900);
      }
  }

  TEST_CASE("an update of distinct replicas takes as long as theory says, and they are as late") {
    struct one {
      uint32_t gradients;
      double mean;
      double staleness;
    };

    for (auto [gradients, mean, staleness] : {one{2, .2678571, 3}, one{4, .6345238, 1}}) {
      target_run run{
        .sync = asynchronous(gradients, 8, k_async), .compute = "exponential(1)", .steps = 6000};
      check_mean(estimate_of_series(run.step_seconds()), mean);
      check_mean(estimate_of_series(staleness_of(run)), staleness);
    }
  }

  TEST_CASE("under k_async no replica gives an update two gradients") {
    target_run run{.sync = asynchronous(5, 8, k_async), .compute = "exponential(1)", .steps = 500};
    for (const auto& step : run.records()) {
      auto who = mapped(step.accepted, &contribution::replica);
      std::ranges::sort(who);
      CHECK(who.size() == 5);
      CHECK(std::ranges::adjacent_find(who) == who.end());
    }
  }

  TEST_CASE("an update of all replicas is a synchronous step") {
    target_run late{
      .sync = asynchronous(20, 20, k_async), .compute = "exponential(1)", .steps = 200};
    target_run all{
      .sync = {20, 20, sync_policy::latest_token}, .compute = "exponential(1)", .steps = 200};
    CHECK(late.step_seconds() == all.step_seconds());
    CHECK(mean_of(staleness_of(late)) == 0);
  }

  TEST_CASE("not to wait for the others is faster by as much as theory says") {
    const ratio_case cases[]
      = {{8, "exponential(1)", 21.742857},      {16, "exponential(1)", 54.091664},
         {30, "exponential(1)", 119.849614},    {100, "exponential(1)", 518.737752},
         {8, "1 + exponential(1)", 14.871429},  {16, "1 + exponential(1)", 35.045832},
         {30, "1 + exponential(1)", 74.924807}, {100, "1 + exponential(1)", 309.368876}};
    for (const auto& [replicas, compute, ratio] : cases) {
      CAPTURE(replicas);
      target_run all{
        .sync = {replicas, replicas, sync_policy::latest_token}, .compute = compute, .steps = 300};
      target_run each{.sync = asynchronous(1, replicas, k_batch_async),
                      .compute = compute,
                      .steps = 100 * uint64_t{replicas}};
      auto slow = estimate_of_series(all.step_seconds());
      auto fast = estimate_of_series(each.step_seconds());
      auto error = std::hypot(slow.standard_error / slow.mean, fast.standard_error / fast.mean);
      check_mean({.mean = slow.mean / fast.mean, .standard_error = error * slow.mean / fast.mean},
                 ratio);
    }
  }

  TEST_CASE("under ssp a clock takes as long as the slack lets it") {
    const slack_case cases[]
      = {{10, 0, 2.928968},          {10, 1, 1.8854, .0015},       {10, 2, 1.5670, .0012},
         {10, 3, 1.4156, .0011},     {10, 5, 1.2707, .0009},       {10, 10, 1.1450, .0011},
         {100, 0, 5.187378, 0, 300}, {100, 1, 2.8804, .0016, 300}, {100, 10, 1.2799, .0008, 300}};
    for (const auto& [replicas, slack, mean, error, clocks] : cases) {
      CAPTURE(replicas);
      CAPTURE(slack);
      target_run run{.sync = asynchronous(1, replicas, sync_policy::ssp, slack),
                     .compute = "exponential(1)",
                     .steps = clocks * replicas};
      auto seconds = sums_of(run.step_seconds(), replicas);
      check_mean(estimate_of_series(seconds), mean, error);
    }
  }

  TEST_CASE("under ssp without slack each replica sees all that was given before") {
    target_run run{
      .sync = asynchronous(1, 10, sync_policy::ssp), .compute = "exponential(1)", .steps = 2000};
    auto all = run.records();
    for (size_t i = 0; i < all.size(); ++i) {
      REQUIRE(all[i].accepted.size() == 1);
      CHECK(all[i].accepted[0].staleness == i % 10);
    }
  }

  TEST_CASE("under ssp no replica waits for one that is dead") {
    target_run run{.sync = asynchronous(1, 10, sync_policy::ssp, 2),
                   .compute = "constant(1)",
                   .steps = 700,
                   .dead = 3};
    CHECK(run.records().back().ended == std::chrono::seconds{100});
  }

  TEST_CASE("rounds of local steps take as long as the slowest sum of their times") {
    const local_case cases[]
      = {{16, 1, 3.380729},  {16, 2, 2.587102},  {16, 5, 1.935475},   {16, 10, 1.633735},
         {16, 20, 1.433341}, {16, 50, 1.265405}, {16, 100, 1.184493}, {100, 1, 5.187377},
         {100, 2, 3.644026}, {100, 5, 2.478649}, {100, 10, 1.973289}};
    for (const auto& [replicas, local_steps, mean] : cases) {
      CAPTURE(replicas);
      CAPTURE(local_steps);
      auto round = round_seconds({replicas, replicas, sync_policy::latest_token}, "exponential(1)",
                                 {.local_steps = local_steps}, 400);
      check_mean(round, mean * local_steps);
    }
  }

  TEST_CASE("so do rounds of many local steps of 100 replicas (a minute: by --no-skip)"
            * doctest::skip()) {
    const local_case cases[] = {{100, 20, 1.651346}, {100, 50, 1.391005}, {100, 100, 1.268971}};
    for (const auto& [replicas, local_steps, mean] : cases) {
      CAPTURE(local_steps);
      auto round = round_seconds({replicas, replicas, sync_policy::latest_token}, "exponential(1)",
                                 {.local_steps = local_steps}, 400);
      check_mean(round, mean * local_steps);
    }
  }

  TEST_CASE("the time of averaging is paid once a round, exactly") {
    for (auto [share, local_steps, speed_up] : averaging_cases) {
      auto averaging = std::chrono::duration_cast<job_time>(std::chrono::duration<double>{share});
      auto seconds = [&](uint32_t steps) {
        return round_seconds({4, 4, sync_policy::latest_token}, "constant(1)",
                             {.local_steps = steps, .averaging_time = averaging}, 20)
          .mean;
      };
      CHECK(std::abs(seconds(1) * local_steps / seconds(local_steps) - speed_up) < 1e-6);
    }
  }

  // A round that waits for all takes six one-way latencies, or brings the model from one card to
  // every replica and the updates back: the delay of the formula, made of messages.
  TEST_CASE("over a network a round pays once for the messages that average") {
    constexpr uint32_t replicas = 4;
    for (auto [share, local_steps, speed_up] : averaging_cases) {
      CAPTURE(share);
      auto delay = std::chrono::duration_cast<job_time>(std::chrono::duration<double>{share});
      network_options far;
      far.latency = [delay](const passage&) { return delay / 6; };
      network_options narrow{.bytes_per_second = 1e9};
      narrow.model_bytes = narrow.gradient_bytes
        = static_cast<uint64_t>(share * 1e9 / (2 * replicas));
      for (const auto& network : {far, narrow}) {
        auto seconds = [&](uint32_t steps) {
          scenario what{.sync = {replicas, replicas, sync_policy::latest_token}, .steps = 8};
          what.local_sgd.local_steps = steps;
          what.network = network;
          auto report = simulate(what);
          REQUIRE_FALSE(report.job.failure);
          return std::chrono::duration<double>(report.step_times.back()).count();
        };
        CHECK(std::abs(seconds(1) * local_steps / seconds(local_steps) - speed_up) < 1e-6);
      }
    }
  }
}

} // namespace asynchronous_test
