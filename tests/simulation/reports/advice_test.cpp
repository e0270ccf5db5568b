// SPDX-License-Identifier: Apache-2.0
// Goal: the search finds the number of backups with the lowest cost, and says when there is none to
// gain. Method: made-up costs with a known lowest one; simulations with a known answer.
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "simulation/reports/advice.hpp"
#include "tests/doctest.hpp"
#include "tests/simulation/harmonic.hpp"

#include <cmath>
#include <set>

namespace advice_test {

using namespace troupe;

namespace {

experiment base_of(const char* compute, uint32_t replicas, uint64_t steps = 400) {
  auto times = distribution::parse(compute);
  REQUIRE(times);
  return {.sync = {replicas, replicas, sync_policy::latest_token},
          .compute = *times,
          .steps = steps,
          .warm_up = 20};
}

advice_question question_of(experiment base, std::vector<sync_policy> policies) {
  return {.base = std::move(base), .policies = std::move(policies)};
}

// A step takes so long, in every batch.
experiment_report took(double seconds) {
  experiment_report report;
  report.step_time.mean = seconds;
  report.batches = {std::vector<double>(20, seconds)};
  return report;
}

} // namespace

TEST_SUITE("simulation/reports/advice") {
  TEST_CASE("finds the lowest cost wherever it is, and tries nothing twice") {
    for (uint32_t lowest : {0U, 1U, 3U, 5U, 7U, 13U, 29U, 60U}) {
      auto question = question_of(base_of("1", 100), {sync_policy::cancel});
      std::set<uint32_t> seen;
      auto found = advise(question, [&](const experiment& what) {
        auto needed = what.sync.replicas_to_aggregate;
        CHECK(seen.insert(needed).second);
        auto distance = std::abs(double(100 - needed) - lowest);
        return took(needed * (10 + distance)); // the curve 1/N divides by N
      });
      REQUIRE(found);
      CHECK(found->tried[found->best].backups == lowest);
      CHECK(found->is_worth_it() == (lowest > 0));
      CHECK(found->tried[found->baseline].backups == 0);
      CHECK(found->tried[found->best].time == doctest::Approx(10.0 / (10 + lowest)));
      CHECK(seen.size() < 25);
    }
  }

  TEST_CASE("the most backups there can be are tried, too") {
    // Without a minimum, exponential times are best if each step takes the first gradient alone.
    auto question = question_of(base_of("exponential(1)", 20), {sync_policy::cancel});
    auto found = advise(question, [](const experiment& what) {
      auto needed = static_cast<int>(what.sync.replicas_to_aggregate);
      return took(test::harmonic(20) - test::harmonic(20 - needed));
    });
    REQUIRE(found);
    CHECK(found->tried[found->best].backups == 19);
    question.buys = true;
    found = advise(question, [](const experiment& what) {
      return took(1.0 / std::pow(what.sync.total_num_replicas, 2));
    });
    REQUIRE(found);
    CHECK(found->tried[found->best].backups == 20); // as many again
  }

  TEST_CASE("bought backups cost their time") {
    auto question = question_of(base_of("1", 50), {sync_policy::cancel});
    question.buys = true;
    auto halves_with_four = [](const experiment& what) {
      CHECK(what.sync.replicas_to_aggregate == 50);
      return took(what.sync.total_num_replicas < 54 ? 2 : 1);
    };
    auto found = advise(question, halves_with_four);
    REQUIRE(found);
    const auto& best = found->tried[found->best];
    CHECK(best.backups == 4);
    CHECK(best.time == 0.5);
    CHECK(best.cost == doctest::Approx(0.54));
    // A gain of 1 % does not pay for a replica more.
    found = advise(question, [](const experiment& what) {
      return took(what.sync.total_num_replicas == 50 ? 1 : 0.99);
    });
    REQUIRE(found);
    CHECK_FALSE(found->is_worth_it());
    CHECK(found->best_with_more());
  }

  TEST_CASE("slow replicas are what backups are for: as many as there are") {
    auto question = question_of(base_of("1 slow={3, 5, 7}*2.4", 20),
                                {sync_policy::latest_token, sync_policy::cancel});
    auto found = advise(question, run);
    REQUIRE(found);
    CHECK(found->tried[found->best].backups == 3);
    CHECK(found->best_of_policy.size() == 2);
    CHECK(found->nearly_best() == std::pair{3U, 3U});
    CHECK(found->tried[found->best].time == doctest::Approx(20 / 17.0 / 2.4));
  }

  TEST_CASE("a saving is no surer than runs agree about it") {
    auto question = question_of(base_of("1", 10), {sync_policy::cancel});
    auto found = advise(question, [](const experiment& what) {
      auto saves = what.sync.replicas_to_aggregate < 10;
      auto report = took(saves ? 0.8 : 2);
      report.batches
        = {std::vector<double>(20, saves ? 0.6 : 1), std::vector<double>(20, saves ? 1 : 3)};
      return report;
    });
    REQUIRE(found);
    CHECK(found->best != found->baseline);
    CHECK(found->tried[found->best].difference.freedom == 1);
    CHECK_FALSE(found->is_worth_it()); // it saves 40 % in one run and 67 % in the other
  }

  TEST_CASE("where replicas hardly differ, the advice is no backup") {
    auto question = question_of(base_of("uniform(0.999, 1.001)", 10), {sync_policy::cancel});
    auto found = advise(question, run);
    REQUIRE(found);
    CHECK_FALSE(found->is_worth_it());
    CHECK(found->tried[found->best].backups == 0);
    CHECK(found->tried[*found->best_with_more()].difference.low > 0);
  }

  TEST_CASE("dead replicas are backups that one has to have") {
    auto base = base_of("constant(1)", 10);
    base.dead = 3;
    auto found = advise(question_of(base, {sync_policy::cancel}), run);
    REQUIRE(found);
    CHECK(found->tried[found->baseline].backups == 3);
    base.dead = 10;
    CHECK_FALSE(advise(question_of(base, {sync_policy::cancel}), run));
  }

  TEST_CASE("a factor of a curve changes no advice, however large or small it is") {
    auto question
      = question_of(base_of("lognormal(1, 0.1) slow={3}*3", 8), {sync_policy::latest_token});
    auto expected = advise(question, run);
    REQUIRE(expected);
    const auto& difference = expected->tried[expected->best].difference;
    for (const auto* curve : {"1e308/N", "1e-300/N"}) {
      question.iterations = *iteration_curve::parse(curve);
      auto found = advise(question, run);
      REQUIRE_MESSAGE(found, curve);
      const auto& best = found->tried[found->best];
      CHECK(best.backups == 1);
      CHECK(best.difference.low == doctest::Approx(difference.low));
      CHECK(best.difference.high == doctest::Approx(difference.high));
    }
  }

  TEST_CASE(
    "a number that a curve does not know is not tried, and the curve has to know the baseline") {
    auto question = question_of(base_of("1", 100), {sync_policy::cancel});
    auto quick = [](const experiment&) { return took(1); };
    question.iterations = *iteration_curve::parse("97: 102, 100: 98");
    auto found = advise(question, quick);
    REQUIRE(found);
    auto needed = mapped(found->tried, [](const auto& one) { return one.needed; });
    CHECK(needed == std::vector<uint32_t>{100, 99, 98});
    question.iterations = *iteration_curve::parse("90: 110, 99: 100");
    CHECK_THROWS_WITH_AS(static_cast<void>(advise(question, quick)),
                         "the curve of iterations does not say how many steps it takes with 100 "
                         "gradients a step, without backups",
                         failure);
    question.iterations = *iteration_curve::parse("1e308*N^99");
    CHECK_THROWS_WITH_AS(static_cast<void>(advise(question, quick)),
                         "the curve of iterations says that it takes inf steps with 100 gradients "
                         "a step; give one that is finite and above 0 there",
                         failure);
  }
}

} // namespace advice_test
