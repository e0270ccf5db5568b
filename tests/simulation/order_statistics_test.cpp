// SPDX-License-Identifier: Apache-2.0
// Goal: where late replicas are cancelled, a step takes as long as the k-th of n independent draws.
// Method: closed forms and quadratures, computed apart from this code, within four standard errors.
// The long cases run with --no-skip.
#include "tests/simulation/harmonic.hpp"
#include "tests/simulation/target.hpp"

#include <algorithm>
#include <cmath>

namespace order_statistics_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr auto cancel = sync_policy::cancel;

struct distribution_case {
  const char* compute;
  std::vector<kth_mean> means;
};

// 50 of 50 + b, for b from 0 on.
constexpr double two_point_means[]
  = {6.7224729, 3.4449458, 1.7734069, 1.1939401, 1.0403814, 1.0072128};

// When all n gradients are needed, the k-th arrival of every step is a draw of T(k:n).
void check_arrivals(uint32_t replicas, const distribution_case& expected, uint64_t steps) {
  CAPTURE(expected.compute);
  uint32_t needed = 0;
  for (auto [k, mean] : expected.means)
    needed = std::max(needed, static_cast<uint32_t>(k));
  target_run run{.sync = {needed, replicas, cancel}, .compute = expected.compute, .steps = steps};
  auto arrivals = arrivals_of(run.records());
  for (auto [k, mean] : expected.means) {
    CAPTURE(k);
    check_mean(estimate_of(arrivals[k - 1]), mean);
  }
}

} // namespace

TEST_SUITE("simulation/order_statistics") {
  TEST_CASE("the actors of a real job meet a target of each synchronous policy") {
    struct policy_case {
      sync_options sync;
      double expected;
      double error;
    };

    const policy_case cases[] = {{{14, 16, sync_policy::cancel}, 1.88073, 0},
                                 {{14, 16, sync_policy::latest_token}, 2.11536, 0},
                                 {{14, 16, sync_policy::tensorflow}, 1.8982, .0003}};
    for (const auto& [sync, expected, error] : cases) {
      CAPTURE(to_string(sync.policy));
      target_run run{.sync = sync,
                     .compute = "exponential(1)",
                     .steps = 2000,
                     .engine = simulation_engine::actors};
      check_mean(estimate_of_series(run.step_seconds()), expected, error);
    }
  }

  TEST_CASE("the k-th of 100 gradients comes when theory says, for ten distributions") {
    const distribution_case cases[] = {
      {"exponential(1)",
       {{50, .6881722},
        {80, 1.5896379},
        {90, 2.2584093},
        {95, 2.9040442},
        {96, 3.1040442},
        {97, 3.3540442},
        {98, 3.6873775},
        {99, 4.1873775},
        {100, 5.1873775}}},
      {"1 + exponential(1)", {{90, 3.2584093}, {96, 4.1040442}, {98, 4.6873775}, {100, 6.1873775}}},
      {"shifted_exponential(0.8, 5)", {{90, 1.2516819}, {100, 1.8374752}}},
      {"pareto(1, 2)",
       {{90, 3.1269176}, {95, 4.3673539}, {96, 4.8526155}, {97, 5.5458462}, {98, 6.6550155}}},
      {"pareto(1, 3)",
       {{90, 2.1331366}, {95, 2.6584508}, {96, 2.8483401}, {98, 3.4956902}, {99, 4.1948282}}},
      {"pareto(1, 1.5)", {{90, 4.5951427}, {95, 7.2126152}, {96, 8.3222483}}},
      {"lognormal(1, 0.25)",
       {{50, .9973657},
        {90, 1.3678718},
        {96, 1.5269333},
        {98, 1.6302649},
        {99, 1.7161119},
        {100, 1.8828763}}},
      {"lognormal(1, 0.5)",
       {{90, 1.8743814}, {96, 2.3384328}, {98, 2.6694080}, {99, 2.9633264}, {100, 3.5894557}}},
      {"lognormal(1, 1)", {{90, 3.5383415}, {96, 5.5341787}, {98, 7.2543114}, {100, 13.5946495}}},
      {"weibull(0.5, 1)", {{90, 5.1856286}, {96, 9.8464631}, {99, 18.1691144}, {100, 28.5438694}}},
      {"weibull(0.7, 1)", {{90, 3.2183765}, {96, 5.0773273}, {99, 7.8196011}, {100, 10.6923797}}},
      {"weibull(3.5, 1)",
       {{1, .2413748}, {50, .8968202}, {96, 1.3790915}, {99, 1.5002171}, {100, 1.5913851}}},
    };
    for (const auto& one : cases)
      check_arrivals(100, one, 500);
  }

  TEST_CASE("exponential steps have the deviation and the quantiles of theory") {
    target_run run{
      .sync = {100, 100, cancel}, .compute = "exponential(1)", .steps = 2000, .seed = 2};
    auto arrivals = arrivals_of(run.records());
    // The error of a deviation is about s / sqrt(2 n), and half as much again for the long tail.
    const std::pair<size_t, double> deviations[]
      = {{96, .4597530}, {98, .6204707}, {99, .7968588}, {100, 1.2786649}};
    for (auto [k, deviation] : deviations) {
      auto seen = estimate_of(arrivals[k - 1]).standard_error * std::sqrt(2000.0);
      CHECK(seen == doctest::Approx(deviation).epsilon(4 * 1.5 / std::sqrt(2 * 2000.0)));
    }
    check_share(arrivals[95], 3.067169, 0.5);
    check_share(arrivals[95], 3.708251, 0.9);
    check_share(arrivals[95], 4.345199, 0.99);
    check_share(arrivals[99], 4.975147, 0.5);
    check_share(arrivals[99], 6.856064, 0.9);
    check_share(arrivals[99], 9.205370, 0.99);
  }

  TEST_CASE("without a finite variance the median is what theory says") {
    target_run run{.sync = {100, 100, cancel}, .compute = "pareto(1, 2)", .steps = 500};
    auto last = run.step_seconds();
    check_share(last, 1 / std::sqrt(1 - std::pow(0.5, 0.01)), 0.5);
  }

  TEST_CASE("backups beside 50 needed replicas save what theory says") {
    const double exponential[]
      = {4.4992053, 3.5188132, 3.0380440, 2.7235785, 2.4920971, 2.3102789, 2.1614694};
    const double normalised[] = {1, 1.2535, 1.4240, 1.5584, 1.6717, 1.7704, 1.8585};
    for (uint32_t backups = 0; backups < 7; ++backups) {
      CAPTURE(backups);
      target_run run{.sync = {50, 50 + backups, cancel}, .compute = "exponential(1)", .steps = 600};
      auto seen = estimate_of(run.step_seconds());
      check_mean(seen, exponential[backups]);
      // The speed-up for each replica that is paid for, from the same mean.
      auto per_replica = 50.0 / (50 + backups);
      auto speed_up = exponential[0] / seen.mean * per_replica;
      CHECK(speed_up
            == doctest::Approx(normalised[backups])
                 .epsilon(4 * seen.standard_error / seen.mean + 0.0001));
      if (backups > 3) continue; // with more it is rare: the long case
      run.compute = "two_point(0.02, 10)";
      check_mean(estimate_of(run.step_seconds()), two_point_means[backups]);
    }
  }

  TEST_CASE("backups save most where tails are long, and the first saves half") {
    const double means[] = {12.564513, 6.344457, 4.804540, 4.041915, 3.569729, 3.242230, 2.998820};
    for (uint32_t backups = 0; backups < 7; ++backups) {
      CAPTURE(backups);
      target_run run{.sync = {50, 50 + backups, cancel}, .compute = "pareto(1, 2)", .steps = 600};
      auto seconds = run.step_seconds();
      if (backups > 0) { // without a backup the variance is infinite
        check_mean(estimate_of(seconds), means[backups]);
        continue;
      }
      check_share(seconds, 1 / std::sqrt(1 - std::pow(0.5, 1.0 / 50)), 0.5);
    }
  }

  TEST_CASE("most gradients in a second are those of a step that waits for 69 of 100") {
    target_run run{.sync = {100, 100, cancel}, .compute = "1 + exponential(1)", .steps = 3000};
    auto arrivals = arrivals_of(run.records());
    auto rate
      = [&](size_t k) { return static_cast<double>(k) / estimate_of(arrivals[k - 1]).mean; };
    // By order statistics k / (1 + H_100 - H_(100-k)) is largest there, and hardly less beside it.
    CHECK(rate(69) == doctest::Approx(31.9425).epsilon(0.005));
    for (size_t k : {50, 60, 78, 90})
      CHECK(rate(k) < rate(69));
    size_t best = 1;
    for (size_t k = 1; k <= 100; ++k) {
      auto exact = [](size_t of) {
        return static_cast<double>(of) / (1 + harmonic(100) - harmonic(100 - static_cast<int>(of)));
      };
      if (exact(k) > exact(best)) best = k;
    }
    CHECK(best == 69);
  }

  TEST_CASE("the number of needed replicas, of 16, decides as theory says") {
    const kth_mean means[]
      = {{8, .6628719}, {12, 1.2973957}, {14, 1.8807290}, {15, 2.3807290}, {16, 3.3807290}};
    for (auto [needed, mean] : means) {
      CAPTURE(needed);
      CHECK(mean == doctest::Approx(harmonic(16) - harmonic(16 - static_cast<int>(needed))));
      target_run run{.sync = {static_cast<uint32_t>(needed), 16, cancel},
                     .compute = "exponential(1)",
                     .steps = 3000};
      check_mean(estimate_of(run.step_seconds()), mean);
    }
  }

  TEST_CASE("rare slow draws cost what the binomial distribution says") {
    check_arrivals(
      100, {"two_point(0.01, 5)", {{100, 3.5358706}, {99, 2.0569521}, {98, 1.3174928}}}, 1500);
    // A stress model: each of 16 is six times slower in one step of 16.
    check_arrivals(16, {"hop", {{16, 4.219629}, {15, 2.320567}, {14, 1.371036}, {13, 1.075627}}},
                   4000);
  }

  TEST_CASE("persistently slow replicas are paid for until they are not needed") {
    check_arrivals(
      50,
      {"uniform(0.95, 1.05) slow=3/50*2.4",
       {{50, 2.46}, {49, 2.40}, {48, 2.34}, {47, 1.0479167}, {46, 1.0458333}, {45, 1.04375}}},
      400);
  }

  TEST_CASE("each dead replica is a backup less") {
    const double means[] = {3.104044, 3.344044, 3.667277, 4.157072, 5.146763};
    for (uint32_t dead = 0; dead <= 4; ++dead) {
      CAPTURE(dead);
      target_run run{
        .sync = {96, 100, cancel}, .compute = "exponential(1)", .steps = 600, .dead = dead};
      check_mean(estimate_of(run.step_seconds()), means[dead]);
    }
  }

  TEST_CASE("10,000 replicas keep to the theory as well (minutes: by --no-skip)"
            * doctest::skip()) {
    check_arrivals(10'000,
                   {"exponential(1)",
                    {{9000, 2.3021352},
                     {9500, 2.9947826},
                     {9900, 4.6002285},
                     {9990, 6.8586378},
                     {10'000, 9.7876060}}},
                   100);
  }

  TEST_CASE("rare events keep to the theory in long runs (minutes: by --no-skip)"
            * doctest::skip()) {
    check_arrivals(100,
                   {"two_point(0.01, 5)",
                    {{100, 3.5358706},
                     {99, 2.0569521},
                     {98, 1.3174928},
                     {97, 1.0734961},
                     {96, 1.0137293},
                     {95, 1.0021381}}},
                   20'000);
    check_arrivals(16, {"hop", {{13, 1.075627}, {12, 1.011621}}}, 100'000);
    for (uint32_t backups : {4U, 5U}) {
      CAPTURE(backups);
      target_run run{
        .sync = {50, 50 + backups, cancel}, .compute = "two_point(0.02, 10)", .steps = 20'000};
      check_mean(estimate_of(run.step_seconds()), two_point_means[backups]);
    }
    check_arrivals(100, {"pareto(1, 2)", {{98, 6.6550155}, {99, 8.8733540}}}, 20'000);
    check_arrivals(100, {"exponential(1)", {{90, 2.2584093}, {96, 3.1040442}, {100, 5.1873775}}},
                   20'000);
    check_arrivals(100, {"pareto(1, 1.5)", {{96, 8.3222483}, {98, 12.8400402}}}, 20'000);
    check_arrivals(100, {"pareto(1, 3)", {{99, 4.1948282}, {100, 6.2922424}}}, 20'000);
  }
}

} // namespace order_statistics_test
