// SPDX-License-Identifier: Apache-2.0
// Goal: the page's numbers are those of the steps, whatever the length of the run. Method: runs
// written by hand, runs of the simulator, and long ones, with the size of their page.
#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"
#include "tools/report/run_json.hpp"
#include "tools/report/run_view.hpp"

#include <nlohmann/json.hpp>

namespace run_view_test {

using namespace troupe;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

contribution contributed(uint32_t replica, job_time arrived, job_time compute) {
  return {.replica = replica, .arrived = arrived, .compute = compute, .loss = 1, .examples = 8};
}

// Replicas 0 and 1 in turn, and replica 2 that takes thrice as long and is late.
step_record step_of_three(uint64_t number) {
  auto began = job_time{1s} * (number - 1);
  step_record step{.step = number, .began = began, .ended = began + 1s, .needed = 2, .live = 3};
  auto first = static_cast<uint32_t>(number % 2);
  step.accepted
    = {contributed(first, began + 700ms, 600ms), contributed(1 - first, began + 900ms, 600ms)};
  if (number % 3 == 0) step.stale = {contributed(2, began + 800ms, 1800ms)};
  return step;
}

run_view view_of(uint64_t steps) {
  run_view view;
  for (uint64_t number = 1; number <= steps; ++number)
    view.add(step_of_three(number));
  return view;
}

json page_of_view(const run_view& view, const run_heading& heading = {}) {
  return json::parse(run_json(view, heading, nullptr));
}

} // namespace

TEST_SUITE("tools/report/run_view") {
  TEST_CASE("tells which replica came first, which was late, and which waited") {
    auto page = page_of_view(view_of(30));
    CHECK(page["progress"]["step"] == 30);
    CHECK(page["progress"]["seconds"] == 30);
    CHECK(page["progress"]["live"] == 3);
    CHECK(page["gradients"] == json{60, 10, 0});
    CHECK(page["arrivals"]["cells"] == json{{15, 15}, {15, 15}, {0, 0}});
    CHECK(page["rows"]["gradients"] == json{{30, 0, 0}, {30, 0, 0}, {0, 10, 0}});
    CHECK(page["waits"]["cells"] == json{{0, 3, 0}, {3, 0, 0}, {0, 0, 0}});
    CHECK(page["step_seconds"]["mean"] == 1);
    CHECK(page["step_seconds"]["points"].size() == 30);
  }

  TEST_CASE("measures a slow-down against the other gradients of the step") {
    auto view = view_of(30);
    CHECK(view.slow_downs().mean_of(0) == 1);
    CHECK(view.slow_downs().mean_of(2) == 3);
    CHECK(std::isnan(view.slow_downs().mean_of(7)));
    auto cells = page_of_view(view)["slow_downs"]["cells"];
    CHECK(cells[0][0] == 100);
    CHECK(cells[2][0] == 0); // no gradient in the first step
    CHECK(cells[2][2] == 300);
    CHECK(slow_replicas(view) == std::vector<uint32_t>{2});
  }

  TEST_CASE("a gradient that was cancelled says nothing about how slow its replica is") {
    run_view view;
    auto step = step_of_three(3);
    step.cancelled
      = {contributed(3, step.ended, job_time{0}), contributed(4, step.ended, job_time{0}),
         contributed(5, step.ended, job_time{0}), contributed(6, step.ended, job_time{0})};
    view.add(step);
    CHECK(view.slow_downs().mean_of(2) == 3);
    CHECK(std::isnan(view.slow_downs().mean_of(3)));
  }

  TEST_CASE("replicas that take turns to be fast are not slow, with two gradients a step") {
    run_view view;
    for (uint64_t number = 1; number <= 30; ++number) {
      auto step = step_of_three(number);
      step.stale.clear();
      step.accepted[0].compute = 400ms;
      step.accepted[1].compute = 600ms;
      view.add(step);
    }
    CHECK(view.slow_downs().mean_of(0) == doctest::Approx(1));
    CHECK(view.slow_downs().mean_of(1) == doctest::Approx(1));
    CHECK(slow_replicas(view).empty());
  }

  TEST_CASE("the fast gradients of a replica that is mostly cancelled do not say how slow it is") {
    run_view view;
    for (uint64_t number = 1; number <= 30; ++number) {
      auto step = step_of_three(number);
      step.stale.clear();
      if (number % 10 == 0)
        step.accepted[1] = contributed(2, step.ended, 1800ms);
      else
        step.cancelled = {contributed(2, step.ended, job_time{0})};
      view.add(step);
    }
    CHECK(view.slow_downs().mean_of(2) > slow_from);
    CHECK(health_of(view, 2).health == replica_health::slow);
    CHECK(health_of(view, 2).words == "3 of its 30 gradients were in time");
  }

  TEST_CASE("says in words how a replica does") {
    auto view = view_of(30);
    CHECK(health_of(view, 0).health == replica_health::well);
    CHECK(health_of(view, 2).words == "takes 3.0 times as long as the others");
    for (uint64_t number = 31; number <= 70; ++number) {
      auto step = step_of_three(number);
      step.stale.clear();
      view.add(step);
    }
    CHECK(health_of(view, 2).health == replica_health::silent);
    CHECK(health_of(view, 2).words == "has given no gradient since step 30");
  }

  TEST_CASE("a replica that has given no gradient has its rows, and is silent once some were due") {
    run_view view;
    view.expect(4);
    CHECK(page_of_view(view)["replicas"].size() == 4); // before the first step
    for (uint64_t number = 1; number <= 20; ++number)
      view.add(step_of_three(number));
    CHECK(health_of(view, 3).health == replica_health::well); // two of four: ten were due
    CHECK(health_of(view, 3).words == "has given no gradient yet");
    view.add(step_of_three(21));
    CHECK(health_of(view, 3).health == replica_health::silent);
    CHECK(health_of(view, 3).words == "has given no gradient");
    CHECK(slow_replicas(view) == std::vector<uint32_t>{2});
    auto page = page_of_view(view);
    CHECK(page["replica_count"] == 4);
    CHECK(page["replicas"][3]["gradients"] == json{0, 0, 0});
    CHECK(page["replicas"][3]["slow_down"].is_null());
    CHECK(page["rows"]["gradients"][3] == json{0, 0, 0});
    for (const auto* table : {"slow_downs", "arrivals", "waits"})
      CHECK(page[table]["rows"]["count"] == 4);
  }

  TEST_CASE("replicas that are told of late have their rows, too") {
    auto view = view_of(30);
    view.expect(200); // more than the rows of waits
    auto page = page_of_view(view);
    CHECK(page["replica_count"] == 200);
    CHECK(page["replicas"].size() == 64);
    CHECK(page["waits"]["rows"]["width"] == 4);
    CHECK(page["gradients"] == json{60, 10, 0});
  }

  TEST_CASE("the map of a run whose gradients took no time is empty") {
    run_view view;
    view.expect(1);
    view.add({.step = 1, .accepted = {contributed(0, 0s, 0s)}});
    CHECK(page_of_view(view)["slow_downs"]["columns"]["count"] == 0);
  }

  TEST_CASE("begins where a resumed run does") {
    run_view view;
    view.add(step_of_three(1001));
    view.add(step_of_three(1002));
    auto progress = page_of_view(view)["progress"];
    CHECK(progress["first_step"] == 1000);
    CHECK(progress["steps"] == 2);
    CHECK(progress["seconds"] == 2);
    CHECK(page_of_view(view)["slow_downs"]["columns"]["count"] == 2);
  }

  TEST_CASE("keeps the newest notices, and lets no text end a script") {
    auto view = view_of(1);
    for (uint64_t i = 0; i < 80; ++i)
      view.add_notice({i, "</script><b>\xff" + std::string(1000, 'x')});
    auto text = run_json(view, {.name = "<i>"}, nullptr);
    CHECK(text.find('<') == std::string::npos);
    auto page = json::parse(text);
    CHECK(page["name"] == "<i>");
    CHECK(page["notices"].size() == run_view::notices_max);
    CHECK(page["notices"].back()[0] == 79);
    CHECK(page["notices"].back()[1].get<std::string>().size() < 500);
  }

  TEST_CASE("a run of a million steps, or of ten thousand replicas, has a page of bounded size") {
    CHECK(run_json(view_of(1'000'000), {}, nullptr).size() < run_json_bytes_max);
    run_view wide;
    auto times = distribution::parse("lognormal(1, 0.3) slow=40/10000*2.4")->times(3);
    auto report = simulate({.sync = {9900, 10'000, sync_policy::latest_token},
                            .steps = 400,
                            .compute = times,
                            .on_step = [&](const step_record& step) { wide.add(step); }});
    REQUIRE_FALSE(report.job.failure);
    auto text = run_json(wide, {}, nullptr);
    CHECK(text.size() < run_json_bytes_max);
    auto page = json::parse(text);
    CHECK(page["slow_downs"]["rows"]["count"] == 79);
    CHECK(page["slow_downs"]["rows"]["width"] == 128);
    CHECK(page["replicas"].size() == 64);
    CHECK(page["gradients"][0] == 9900 * 400);
    auto slow = std::ranges::count_if(page["replicas"],
                                      [](const auto& one) { return one["health"] == "slow"; });
    CHECK(slow == 40);
  }
}

} // namespace run_view_test
