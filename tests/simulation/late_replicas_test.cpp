// SPDX-License-Identifier: Apache-2.0
// Goal: where late replicas finish and are dropped, steps take what the protocols imply: longer
// than order statistics say. Method: exact dynamic programs and event simulations written apart
// from this code, within four standard errors. The long cases run with --no-skip.
#include "tests/simulation/target.hpp"

namespace late_replicas_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr auto latest_token = sync_policy::latest_token;
constexpr auto tensorflow = sync_policy::tensorflow;

struct policy_case {
  uint32_t replicas;
  uint32_t needed;
  const char* compute;
  double mean;
  double error = 0; ///< Error of `mean`, if it was simulated.
  uint64_t steps = 500;
};

void check_case(sync_policy policy, const policy_case& one) {
  CAPTURE(one.compute);
  CAPTURE(one.replicas);
  CAPTURE(one.needed);
  target_run run{
    .sync = {one.needed, one.replicas, policy}, .compute = one.compute, .steps = one.steps};
  check_mean(estimate_of_series(run.step_seconds()), one.mean, one.error);
  if (policy != tensorflow) return;
  // Every update makes n tokens and uses N gradients. At most n are dropped in the round that the
  // tokens of the start waste, and n are on their way at the end.
  auto dropped = static_cast<double>(run.report.stale);
  auto expected = static_cast<double>(one.steps) * (one.replicas - one.needed);
  CHECK(std::abs(dropped - expected) <= 2.0 * one.replicas);
}

constexpr const char* slow_set = "uniform(0.95, 1.05) slow=3/50*2.4";

} // namespace

TEST_SUITE("simulation/late_replicas") {
  TEST_CASE("latest_token takes exponential times as the exact program says") {
    const policy_case cases[] = {
      {2, 1, "exponential(1)", .75, 0, 6000},
      {3, 2, "exponential(1)", 1.1111111, 0, 6000},
      {4, 3, "exponential(1)", 1.3541667, 0, 6000},
      {16, 15, "exponential(1)", 2.5295246, 0, 3000},
      {16, 14, "exponential(1)", 2.1153617, 0, 3000},
      {16, 8, "exponential(1)", 1.0891817, 0, 3000},
      {51, 50, "exponential(1)", 3.5878095},
      {52, 50, "exponential(1)", 3.1535609},
      {53, 50, "exponential(1)", 2.8752533},
      {54, 50, "exponential(1)", 2.6734759},
      {55, 50, "exponential(1)", 2.5168207},
      {100, 99, "exponential(1)", 4.2292513},
      {100, 98, "exponential(1)", 3.7604577},
      {100, 96, "exponential(1)", 3.2259770},
      {100, 90, "exponential(1)", 2.4802023},
      {100, 50, "exponential(1)", 1.1369068},
    };
    for (const auto& one : cases)
      check_case(latest_token, one);
  }

  TEST_CASE("latest_token and cancel take the same steps where every replica is needed") {
    target_run late{.sync = {20, 20, latest_token}, .compute = "exponential(1)", .steps = 200};
    target_run cancelled{
      .sync = {20, 20, sync_policy::cancel}, .compute = "exponential(1)", .steps = 200};
    CHECK(late.step_seconds() == cancelled.step_seconds());
  }

  TEST_CASE("latest_token pays a slow draw for as many steps as it lasts") {
    check_case(latest_token, {100, 98, "two_point(0.01, 5)", 2.0242, .0014});
    check_case(latest_token, {100, 96, "two_point(0.01, 5)", 1.5094, .0008});
  }

  TEST_CASE("latest_token pays nothing for replicas that are always slow") {
    check_case(latest_token, {50, 47, slow_set, 1.0479, .0001, 400});
    check_case(latest_token, {50, 46, slow_set, 1.0459, .0001, 400});
    check_case(latest_token, {50, 45, slow_set, 1.0439, .0001, 400});
  }

  TEST_CASE("tensorflow takes exponential times as simulated elsewhere") {
    const policy_case cases[] = {
      {100, 96, "exponential(1)", 3.1051, .0005},
      {54, 50, "exponential(1)", 2.4961, .0004},
      {16, 14, "exponential(1)", 1.8982, .0003, 3000},
      {4, 3, "exponential(1)", 1.2180, .0002, 6000},
      {3, 2, "exponential(1)", 1.0836, .0002, 6000},
    };
    for (const auto& one : cases)
      check_case(tensorflow, one);
  }

  TEST_CASE("tensorflow takes other distributions as simulated elsewhere") {
    check_case(tensorflow, {100, 96, "1 + exponential(1)", 4.1453, .002});
    check_case(tensorflow, {16, 14, "1 + exponential(1)", 3.0169, .0003, 3000});
    check_case(tensorflow, {16, 14, "pareto(1, 3)", 2.1028, .0003, 3000});
    check_case(tensorflow, {100, 98, "two_point(0.01, 5)", 1.8326, .0011});
    check_case(latest_token, {100, 96, "1 + exponential(1)", 4.2274, .002});
    check_case(latest_token, {16, 14, "1 + exponential(1)", 3.1233, .0003, 3000});
    check_case(latest_token, {16, 14, "pareto(1, 3)", 2.1726, .0003, 3000});
  }

  TEST_CASE("tensorflow pays for replicas that are always slow by stale tokens") {
    check_case(tensorflow, {50, 47, slow_set, 1.3947, .0006, 1500});
    check_case(tensorflow, {50, 46, slow_set, 1.3383, .0006, 1500});
    check_case(tensorflow, {50, 45, slow_set, 1.3239, .0006, 1500});
  }

  TEST_CASE("tensorflow goes on with dead replicas at the same speed, by borrowing gradients") {
    target_run run{
      .sync = {96, 100, tensorflow}, .compute = "exponential(1)", .steps = 1000, .dead = 4};
    check_mean(estimate_of_series(run.step_seconds()), 3.109, .002);
    run.dead = 5;
    check_mean(estimate_of_series(run.step_seconds()), 3.110, .004);
  }

  TEST_CASE("the others slow down with every dead replica") {
    target_run run{
      .sync = {96, 100, latest_token}, .compute = "exponential(1)", .steps = 600, .dead = 4};
    check_mean(estimate_of_series(run.step_seconds()), 5.14676);
  }

  TEST_CASE("long runs keep to the theory (minutes: by --no-skip)" * doctest::skip()) {
    check_case(latest_token, {100, 96, "exponential(1)", 3.2259770, 0, 20'000});
    check_case(latest_token, {54, 50, "exponential(1)", 2.6734759, 0, 20'000});
    check_case(latest_token, {100, 98, "two_point(0.01, 5)", 2.0242, .0014, 20'000});
    check_case(tensorflow, {100, 96, "exponential(1)", 3.1051, .0005, 20'000});
    check_case(tensorflow, {54, 50, "exponential(1)", 2.4961, .0004, 20'000});
    check_case(tensorflow, {50, 47, slow_set, 1.3947, .0006, 20'000});
    check_case(tensorflow, {4, 3, "exponential(1)", 1.2180, .0002, 200'000});
  }
}

} // namespace late_replicas_test
