// SPDX-License-Identifier: Apache-2.0
// Goal: the figures of an experiment are those of its steps, add up, and come out the same again.
// Method: small experiments with figures that are known exactly, and one against another.
#include "messages/errors/failure.hpp"
#include "simulation/experiment.hpp"
#include "simulation/ledger_hash.hpp"
#include "simulation/on_threads.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace experiment_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

experiment small(const char* compute, sync_options sync) {
  auto times = distribution::parse(compute);
  REQUIRE(times);
  return {.sync = std::move(sync), .compute = *times, .steps = 60, .warm_up = 0};
}

} // namespace

TEST_SUITE("simulation/experiment") {
  TEST_CASE("the figures of constant times are exact") {
    auto report = run(small("constant(2)", {4, 5, sync_policy::cancel}));
    CHECK(report.step_time.mean == 2);
    CHECK(report.step_time.standard_error == 0);
    CHECK(report.step_time.p50 == 2);
    CHECK(report.step_time.max == 2);
    CHECK(report.steps == 60);
    CHECK(report.accepted == 240);
    CHECK(report.stale + report.cancelled == 60); // it is done at the same moment, and too late
    CHECK(report.drop_fraction() == 0.2);
    CHECK(report.virtual_seconds == 120);
    CHECK(report.live_replica_seconds == 5 * 120);
    CHECK(report.updates_per_second() == 0.5);
    CHECK(report.gradients_per_second() == 2);
    CHECK(report.wasted_replica_seconds == 120); // the fifth of every step, all of it
    CHECK(report.events == 300);                 // a computation of each replica for each step
    CHECK(report.events_per_second() > 0);
    CHECK_FALSE(report.stalled);
  }

  TEST_CASE("late gradients are counted by how late they were") {
    // A replica that takes 2.4 s where the others take 1 s is late by two steps or three.
    auto report = run(small("1 slow={0}*2.4", {2, 3, sync_policy::latest_token}));
    CHECK(report.step_time.mean == 1);
    CHECK(report.staleness_counts.at(0) == 120);
    CHECK(report.stale == 24); // the 25th would come with the end
    CHECK(report.staleness_counts.size() == 3);
    CHECK(report.staleness_counts.at(2) + report.staleness_counts.at(3) == 24);
    auto late = 2.0 * static_cast<double>(report.staleness_counts.at(2));
    late += 3.0 * static_cast<double>(report.staleness_counts.at(3));
    CHECK(report.mean_staleness() == doctest::Approx(late / 144));
    CHECK(report.wasted_replica_seconds == doctest::Approx(2.4 * 24));
  }

  TEST_CASE("the warm-up counts for the books, not for step times") {
    auto wasteful = small("constant(1)", {4, 4});
    CHECK(run(wasteful).step_time.max == 2); // the second round of tensorflow
    wasteful.warm_up = 2;
    auto report = run(wasteful);
    CHECK(report.step_time.max == 1);
    CHECK(report.steps == 60);
    wasteful.warm_up = 60;
    CHECK(std::isnan(run(wasteful).step_time.mean));
  }

  TEST_CASE("steps that a restart has made again are no progress, and none are two at a time") {
    auto restarted = small("1", {3, 4, sync_policy::latest_token});
    restarted.steps = 300;
    restarted.faults.faults = {{.at = 190500ms, .lasts = 10s, .who = {"chief"}},
                               {.at = 390500ms, .lasts = 10s, .who = {"chief"}}};
    restarted.runs = 2;
    auto report = run(restarted);
    CHECK(report.restarts == 2 * 2);
    CHECK(report.steps == 2 * 479);
    CHECK(report.undone_steps == 2 * 179);
    CHECK(report.undone_accepted == 2 * 3 * 179);
    CHECK(report.down_seconds == doctest::Approx(2 * 20));
    CHECK(report.updates_per_second() == doctest::Approx(300 / 500.5));
    CHECK(report.gradients_per_second() == doctest::Approx(900 / 500.5));
    CHECK_FALSE(report.is_whole());
    restarted.faults = {};
    CHECK(run(restarted).is_whole());
  }

  TEST_CASE("runs of an experiment have seeds of their own, and add up") {
    auto twice = small("exponential(1)", {3, 4, sync_policy::cancel});
    twice.runs = 2;
    auto both = run(twice);
    twice.runs = 1;
    auto first = run(twice);
    twice.seed = 1;
    auto second = run(twice);
    CHECK(both.accepted == first.accepted + second.accepted);
    CHECK(both.virtual_seconds == doctest::Approx(first.virtual_seconds + second.virtual_seconds));
    CHECK(both.batches.size() == first.batches.size() + second.batches.size());
    CHECK(first.log_hash != second.log_hash);
  }

  TEST_CASE("where the seed decides which replicas are slow, the interval is that of the runs") {
    auto what = small("persistent(lognormal(1, 0.5))", {4, 4, sync_policy::cancel});
    what.runs = 8;
    auto report = run(what);
    std::vector<double> means; // steps of a run are all alike
    for (const auto& batches : report.batches)
      means.push_back(batches.front());
    auto expected = estimate_of(means).standard_error;
    CHECK(report.step_time.standard_error == doctest::Approx(expected));
    CHECK(report.half_width() == doctest::Approx(student_quantile(7) * expected));
    what.sync.replicas_to_aggregate = 3;
    auto difference = step_time_difference(run(what), report);
    REQUIRE(difference);
    CHECK(difference->freedom == 7);
    CHECK(difference->count == 8 * batch_count);
  }

  TEST_CASE("the interval of a single run holds the truth though slow periods outlast batches") {
    auto what = small("lognormal(1, 0.1) * on_off(0.002, 0.02, 3)", {9, 10, sync_policy::cancel});
    what.steps = 20'000;
    auto truth = run(what).step_time;
    what.steps = 600;
    int mean_held = 0;
    int median_held = 0;
    for (what.seed = 1; what.seed <= 40; ++what.seed) {
      auto report = run(what);
      mean_held += std::abs(report.step_time.mean - truth.mean) <= report.half_width() ? 1 : 0;
      const auto& range = report.step_time.p50_range;
      median_held += !(range.low > truth.p50) && !(range.high < truth.p50) ? 1 : 0;
    }
    CHECK(mean_held >= 34);
    CHECK(median_held >= 34);
  }

  TEST_CASE("the same experiment gives the same hash, and any other another") {
    auto what = small("lognormal(1, 0.25)", {6, 8});
    auto hash = run(what).log_hash;
    CHECK(run(what).log_hash == hash);
    what.seed = 1;
    CHECK(run(what).log_hash != hash);
    what.seed = 0;
    what.dead = 1;
    CHECK(run(what).log_hash != hash);
  }

  TEST_CASE("a stalled experiment says at which step, and which replicas are left and needed") {
    auto hopeless = small("1", {4, 5, sync_policy::latest_token});
    hopeless.dead = 2;
    auto report = run(hopeless);
    REQUIRE(report.stalled);
    CHECK(report.stalled->step == 1);
    CHECK(report.stalled->live == 3);
    CHECK(report.stalled->needed == 4);
    CHECK(report.stalled->tokens == 0);
    CHECK(report.steps == 0);
    CHECK(std::isnan(report.step_time.mean));
  }

  TEST_CASE("of several runs the seed of the first that stalls is told, and how many stall") {
    auto risky = small("1", {3, 4, sync_policy::latest_token});
    risky.steps = 20;
    risky.faults.rates.crash_mean = std::chrono::seconds{60};
    std::vector<uint64_t> stalled;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      risky.seed = seed;
      auto report = run(risky);
      CHECK(report.stalled_runs == (report.stalled ? 1 : 0));
      if (report.stalled) stalled.push_back(seed);
    }
    REQUIRE(stalled.size() > 1);
    REQUIRE(stalled.size() < 12);
    risky.seed = 0;
    risky.runs = 12;
    risky.threads = 2;
    auto report = run(risky);
    CHECK(report.stalled_runs == stalled.size());
    CHECK(report.stalled_seed == stalled.front());
    risky.seed = stalled.front();
    risky.runs = 1;
    CHECK(run(risky).stalled->reason == report.stalled->reason);
  }

  TEST_CASE("without a live replica the tokens of the start are left") {
    auto deserted = small("1", {2, 3});
    deserted.dead = 3;
    auto report = run(deserted);
    REQUIRE(report.stalled);
    CHECK(report.stalled->live == 0);
    CHECK(report.stalled->tokens == 2);
  }

  TEST_CASE("experiments of the same draws differ by less than either may be off") {
    auto cautious = small("exponential(1)", {14, 16, sync_policy::cancel});
    cautious.steps = 2000;
    auto bold = cautious;
    bold.sync.replicas_to_aggregate = 13;
    auto slow = run(cautious);
    auto fast = run(bold);
    auto difference = step_time_difference(fast, slow);
    REQUIRE(difference);
    // One order statistic less: 1/3 of a second.
    CHECK(difference->low < -1.0 / 3);
    CHECK(difference->high > -1.0 / 3);
    auto apart = std::hypot(slow.step_time.standard_error, fast.step_time.standard_error);
    CHECK(difference->standard_error < 0.7 * apart);
  }

  TEST_CASE("experiments of different lengths are not compared") {
    auto what = small("1", {2, 2});
    auto report = run(what);
    what.runs = 2;
    CHECK_FALSE(step_time_difference(run(what), report));
    what.runs = 1;
    what.steps *= 2;
    CHECK_FALSE(step_time_difference(run(what), report));
  }

  TEST_CASE("any number of threads gives the same figures, by either engine") {
    auto what = small("correlated(0.5, exponential(1)) slow=1/4*2", {6, 8});
    what.runs = 7;
    what.engine = simulation_engine::actors;
    const auto alone = run(what);
    for (auto engine : {simulation_engine::actors, simulation_engine::direct})
      for (unsigned threads : {1U, 2U, 5U, 16U}) {
        CAPTURE(threads);
        what.engine = engine;
        what.threads = threads;
        auto report = run(what);
        CHECK(report.log_hash == alone.log_hash);
        CHECK(report.batches == alone.batches);
        CHECK(report.staleness_counts == alone.staleness_counts);
        CHECK(report.step_time.mean == alone.step_time.mean);
        CHECK(report.step_time.p99 == alone.step_time.p99);
        CHECK(report.wasted_replica_seconds == alone.wasted_replica_seconds);
      }
  }

  TEST_CASE("runs on several threads are told like runs on one") {
    std::vector<int> done(9, 0);
    for_each_on_threads(done.size(), 4, [&](size_t i) { ++done[i]; });
    CHECK(done == std::vector<int>(9, 1));
    CHECK_THROWS_WITH_AS(for_each_on_threads(5, 3,
                                             [](size_t i) {
                                               if (i > 1)
                                                 throw std::runtime_error{std::to_string(i)};
                                             }),
                         "2", std::runtime_error);
  }

  TEST_CASE("refuses counts that no run could satisfy") {
    CHECK_THROWS_AS(static_cast<void>(run(small("1", {0, 2}))), failure);
  }
}

TEST_SUITE("simulation/ledger_hash") {
  TEST_CASE("every difference between two ledgers shows") {
    step_record step{.step = 1, .began = 1s, .ended = 2s, .live = 2};
    step.accepted = {{.replica = 0, .arrived = 2s}, {.replica = 1, .arrived = 2s}};
    auto hash_of = [](const step_record& record) {
      ledger_hash hash;
      hash.add(record);
      return hash.value();
    };
    auto same = step;
    CHECK(hash_of(same) == hash_of(step));
    auto swapped = step;
    std::swap(swapped.accepted[0], swapped.accepted[1]);
    CHECK(hash_of(swapped) != hash_of(step));
    auto later = step;
    later.accepted[1].arrived += 1ns;
    CHECK(hash_of(later) != hash_of(step));
    auto moved = step;
    moved.stale.push_back(moved.accepted.back());
    moved.accepted.pop_back();
    CHECK(hash_of(moved) != hash_of(step));
  }
}

} // namespace experiment_test
