// SPDX-License-Identifier: Apache-2.0
// Goal: what plots show is what the steps were: arrivals, work, spans, slow-down, distributions.
// Method: small experiments with steps that are known exactly, and records made by hand.
#include "simulation/reports/run_profile.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace run_profile_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

profile_figures profile_of(const char* compute, sync_options sync, uint64_t steps,
                           uint32_t dead = 0, uint64_t runs = 1, job_time latency = 0s) {
  auto times = distribution::parse(compute);
  REQUIRE(times);
  experiment what{.sync = std::move(sync),
                  .compute = *times,
                  .steps = steps,
                  .warm_up = 0,
                  .dead = dead,
                  .runs = runs};
  if (latency > 0s)
    what.network = [latency](uint64_t) {
      return network_options{.latency = [latency](const passage&) { return latency; }};
    };
  run_profile profile{what, true};
  what.on_step = [&](const step_record& step) { profile.add(step); };
  what.on_delivery = [&](const delivery& came) { profile.add(came); };
  static_cast<void>(run(what));
  return profile.figures();
}

double sum_of_parts(const work_totals& work) {
  return work.useful_seconds + work.stale_seconds + work.cancelled_seconds + work.down_seconds
         + work.waiting_seconds;
}

} // namespace

TEST_SUITE("simulation/reports/run_profile") {
  TEST_CASE("the k-th arrival is that of the k-th fastest replica") {
    auto figures = profile_of("1 slow={0}*2 slow={1}*3", {3, 3, sync_policy::cancel}, 10);
    REQUIRE(figures.arrivals.size() == 3);
    CHECK(figures.arrivals[0].k == 1);
    CHECK(figures.arrivals[0].mean == 1);
    CHECK(figures.arrivals[1].p50 == 2);
    CHECK(figures.arrivals[2].p90 == 3);
  }

  TEST_CASE("arrivals that every step had are told, later ones not") {
    arrival_profile arrivals;
    auto record = test::step_with_a_straggler();
    arrivals.add(record);
    record.accepted.pop_back();
    arrivals.add(record);
    auto figures = arrivals.figures();
    REQUIRE(figures.size() == 2);
    CHECK(figures[1].mean == doctest::Approx(0.2));
    CHECK(arrival_profile{}.figures().empty());
  }

  TEST_CASE("a long run keeps a part of its arrivals") {
    arrival_profile arrivals;
    auto record = test::step_with_a_straggler();
    record.accepted.assign(arrival_profile::values_max / 8, record.accepted[0]);
    for (int i = 0; i < 100; ++i)
      arrivals.add(record);
    CHECK(arrivals.figures().size() == arrival_profile::values_max / 8);
  }

  TEST_CASE("the parts of the replicas' time add up, whatever the policy") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto work = profile_of("exponential(1)", {6, 8, policy}, 200, 1).work;
      CHECK(work.replica_seconds > 0);
      CHECK(sum_of_parts(work) == doctest::Approx(work.replica_seconds));
      CHECK(work.down_seconds == doctest::Approx(work.replica_seconds / 8));
      CHECK(work.accepted == 1200);
      CHECK((work.cancelled > 0) == (policy == sync_policy::cancel));
    }
  }

  TEST_CASE("work that was not used is told by replica") {
    // Four of five are needed at the same moment; under cancel the fifth works in vain.
    auto figures = profile_of("constant(2)", {4, 5, sync_policy::cancel}, 50);
    CHECK(figures.work.stale + figures.work.cancelled == 50);
    CHECK(figures.work.stale_seconds + figures.work.cancelled_seconds == 100);
    CHECK(figures.work.replica_seconds_per_accepted() == 2.5);
    double wasted = 0;
    uint64_t accepted = 0;
    for (const auto& replica : figures.replicas) {
      wasted += replica.wasted_seconds;
      accepted += replica.accepted;
    }
    CHECK(wasted == 100);
    CHECK(accepted == 200);
    CHECK(std::isinf(work_totals{}.replica_seconds_per_accepted()));
  }

  TEST_CASE("spans leave no gap and do not overlap") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto figures = profile_of("exponential(1)", {3, 5, policy}, 40, 1, 2);
      REQUIRE(figures.spans);
      const auto& bounds = figures.spans->bounds();
      REQUIRE(bounds.size() == 41);
      auto at = bounds.back();
      uint32_t replica = 0;
      uint32_t count = 0;
      for (const auto& span : figures.spans->spans()) {
        if (at == bounds.back()) {
          replica = count++;
          at = bounds.front();
        }
        CHECK(span.replica == replica);
        CHECK(span.start == at);
        CHECK(span.end > span.start);
        CHECK((span.replica == 0)
              == (span.what == replica_state_kind::absent
                  && span.end - span.start == bounds.back() - bounds.front()));
        at = span.end;
      }
      CHECK(count == 5);
      CHECK(at == bounds.back());
    }
  }

  TEST_CASE("a job that goes on from a snapshot has one timeline, with the steps made again") {
    auto times = distribution::parse("1");
    experiment what{.sync = {2, 3, sync_policy::latest_token},
                    .compute = *times,
                    .steps = 160,
                    .warm_up = 90,
                    .runs = 2};
    what.faults.faults
      = {{.kind = fault_kind::crash, .at = 120500ms, .lasts = 5s, .who = {"chief"}}};
    run_profile profile{what, true};
    std::map<uint64_t, int> made;
    what.on_step = [&](const step_record& step) {
      ++made[step.step];
      profile.add(step);
    };
    auto report = run(what);
    REQUIRE(report.restarts == 2);
    REQUIRE(made[110] == 4); // twice in each run
    auto figures = profile.figures();
    REQUIRE(figures.spans);
    const auto& bounds = figures.spans->bounds();
    REQUIRE(bounds.size() == 71);
    CHECK(std::ranges::is_sorted(bounds));
    CHECK(bounds.front() == 90s);
    CHECK(bounds.back() > 180s); // 160 s, and the twenty seconds that were lost
    CHECK(figures.spans->spans().back().end == bounds.back());
    CHECK(slow_down_of(*figures.spans).rows[0].size() == 70);
  }

  TEST_CASE("where messages take time a replica reads, computes, sends, and waits for its token") {
    auto figures = profile_of("1", {2, 2, sync_policy::latest_token}, 20, 0, 1, 100ms);
    REQUIRE(figures.spans);
    std::map<replica_state_kind, job_time> lasts;
    for (const auto& span : figures.spans->spans())
      if (span.step == 10) lasts[span.what] += span.end - span.start;
    CHECK(lasts.size() == 4);
    CHECK(lasts[replica_state_kind::reading] == 2 * 200ms);
    CHECK(lasts[replica_state_kind::accepted] == 2 * 1s);
    CHECK(lasts[replica_state_kind::sending] == 2 * 100ms);
    CHECK(lasts[replica_state_kind::waiting] == 2 * 300ms); // an answer, a question, a token
  }

  TEST_CASE("a gradient's way begins when it is sent, and ends when it comes") {
    gradient_trips trips{2};
    trips.add({.time = 2s, .sent = 1s, .replica = 1, .kind = "ReadVariable"});
    trips.add({.time = 3s, .sent = 2s, .replica = 1, .kind = "VariableSnapshot"});
    trips.add({.time = 6s, .sent = 5s, .replica = 1, .kind = "PushGradient"});
    trips.add({.time = 7s, .sent = 5s, .replica = 1, .kind = "PushGradient"}); // its other part
    trips.add({.time = 7s, .sent = 5s, .replica = 2, .kind = "PushGradient"}); // no replica's
    CHECK_FALSE(trips.take(0, 7s));
    auto trip = trips.take(1, 7s);
    REQUIRE(trip);
    CHECK(trip->asked == 1s);
    CHECK(trip->sent == 5s);
    CHECK_FALSE(trips.take(1, 7s));
    trips.forget_before(7s);
    CHECK_FALSE(trips.take(1, 6s));
  }

  TEST_CASE("a slow replica is slow in every step that it takes") {
    auto figures = profile_of("1 slow={0}*2.5", {2, 3, sync_policy::latest_token}, 10);
    auto map = slow_down_of(*figures.spans);
    CHECK(map.usual_seconds == 1);
    CHECK(map.replicas_per_row == 1);
    REQUIRE(map.rows.size() == 3);
    REQUIRE(map.rows[0].size() == 10);
    for (float times : map.rows[1])
      CHECK(times == 1);
    for (size_t step = 0; step < 7; ++step) // its last gradient never came
      CHECK(map.rows[0][step] == 2.5f);
  }

  TEST_CASE("a gradient that was told to stop is told apart") {
    auto figures = profile_of("1 slow={0}*2.5", {2, 3, sync_policy::cancel}, 10);
    auto map = slow_down_of(*figures.spans);
    CHECK(map.rows[0][5] == -1);
    CHECK(map.rows[1][5] == 1);
  }

  TEST_CASE("many replicas share rows, which show the slowest") {
    auto figures = profile_of("1 slow={301}*3", {600, 600, sync_policy::cancel}, 3);
    auto map = slow_down_of(*figures.spans);
    CHECK(map.replicas_per_row == 6);
    REQUIRE(map.rows.size() == 100);
    CHECK(map.rows[50][1] == 3);
    CHECK(map.rows[49][1] == 1);
    CHECK(slow_down_of(replica_spans{4, {1, 5}}).rows.empty());
  }

  TEST_CASE("a distribution is told in a few hundred points, its end exactly") {
    std::vector<double> few{3, 1, 2, 4};
    auto points = distribution_of(few);
    REQUIRE(points.size() == 5);
    CHECK(points[0].seconds == 1);
    for (size_t i = 0; i < points.size(); ++i) {
      CHECK(points[i].share == 0.25 * static_cast<double>(i));
      if (i > 0) CHECK(points[i].seconds == static_cast<double>(i));
    }
    std::vector<double> many;
    for (int i = 100'000; i > 0; --i)
      many.push_back(i);
    points = distribution_of(many);
    CHECK(points.size() < 400);
    CHECK(points.back().share == 1);
    CHECK(points.back().seconds == 100'000);
    for (size_t i = 1; i < points.size(); ++i) {
      CHECK(points[i].share > points[i - 1].share);
      CHECK(points[i].seconds >= points[i - 1].seconds);
    }
    CHECK(distribution_of({}).empty());
  }

  TEST_CASE("the warm-up counts for nothing") {
    auto times = distribution::parse("constant(1)");
    experiment what{.sync = {4, 4}, .compute = *times, .steps = 20, .warm_up = 5};
    run_profile profile{what, false};
    what.on_step = [&](const step_record& step) { profile.add(step); };
    static_cast<void>(run(what));
    auto figures = profile.figures();
    CHECK(figures.step_times.size() == 16); // and where the curve begins
    CHECK(figures.step_p90 == 1);
    CHECK(figures.work.accepted == 60);
    CHECK_FALSE(figures.spans);
  }
}

} // namespace run_profile_test
