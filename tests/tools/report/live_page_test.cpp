// SPDX-License-Identifier: Apache-2.0
// Goal: a page that is looked at while its run goes on says what the run has come to. Method: steps
// made by hand, with the texts that a server would send; what-if from a ledger that was recorded.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"
#include "tools/report/live_page.hpp"
#include "tools/run/run_folder_hook.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

namespace live_page_test {

using namespace troupe;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const session_control no_control{[](const std::string&) {}};

// Replica 1 takes thrice as long as replica 0, which waits for it.
step_record step_of_two(uint64_t number) {
  auto began = job_time{3s} * (number - 1);
  step_record step{.step = number, .began = began, .ended = began + 3s, .needed = 2, .live = 2};
  step.accepted = {{.replica = 0,
                    .local_step = number - 1,
                    .arrived = began + 1s,
                    .compute = 1s,
                    .waited = number == 1 ? 0s : 2s,
                    .loss = 2,
                    .examples = 8},
                   {.replica = 1,
                    .local_step = number - 1,
                    .arrived = began + 3s,
                    .compute = 3s,
                    .loss = 2,
                    .examples = 8}};
  return step;
}

job_options options_of_two() {
  job_options options;
  options.replicas = 2;
  options.aggregate = 2;
  options.policy = sync_policy::latest_token;
  options.steps = 10;
  return options;
}

json shown(live_page& page) {
  return json::parse(*page.news().text());
}

} // namespace

TEST_SUITE("tools/report/live_page") {
  TEST_CASE("before the first step it says that there is none") {
    live_page page{"loss", options_of_two()};
    page.open("runs/first");
    auto now = shown(page);
    CHECK(now["name"] == "first");
    CHECK(now["state"] == "about to begin");
    CHECK(now["is_live"] == true);
    CHECK(now["progress"]["steps"] == 0);
    CHECK(now["what_if"].is_null());
  }

  TEST_CASE("has every step, evaluation and notice at once") {
    live_page page{"bits_per_byte", options_of_two()};
    for (uint64_t number = 1; number <= 4; ++number)
      page.after_step(no_control, step_of_two(number));
    page.on_evaluation(4, 1.5);
    page.on_evaluation(5, std::numeric_limits<double>::quiet_NaN()); // one that failed
    page.keep_notice("lost <replica> 7");
    auto now = shown(page);
    CHECK(now["state"] == "running");
    CHECK(now["progress"]["step"] == 4);
    CHECK(now["progress"]["step_count"] == 10);
    CHECK(now["progress"]["seconds"] == 12);
    CHECK(now["gradients"] == json{8, 0, 0});
    CHECK(now["evaluations"]["last"] == 1.5);
    CHECK(now["evaluations"]["measure"] == "bits per byte");
    CHECK(now["notices"] == json{{4, "lost <replica> 7"}});
    page.after_step(no_control, step_of_two(5));
    CHECK(shown(page)["progress"]["step"] == 5);
  }

  TEST_CASE("has each replica of the job from its beginning") {
    live_page page{"loss", options_of_two()};
    auto world = world::virtual_time();
    session_plan plan{.world = world, .replicas = 3};
    page.begin(plan);
    CHECK(shown(page)["replica_count"] == 3);
    page.after_step(no_control, step_of_two(1));
    CHECK(shown(page)["replicas"][2]["words"] == "has given no gradient yet");
  }

  TEST_CASE("is the same text until something has changed") {
    live_page page{"loss", options_of_two()};
    auto text = page.news().text;
    auto first = text();
    CHECK(text() == first);
    page.keep_notice("now");
    CHECK(text() != first);
  }

  TEST_CASE("serves a page with what it shows, and nothing else") {
    live_page page{"loss", options_of_two()};
    page.after_step(no_control, step_of_two(1));
    page.end({}); // so that no replay changes it meanwhile
    auto answer = page.answer("/");
    CHECK(answer.status == 200);
    CHECK(answer.content_type == "text/html; charset=utf-8");
    CHECK(answer.body.find(*page.news().text()) != std::string::npos);
    CHECK(page.answer("/report.html").status == 404);
  }

  TEST_CASE("says that training is over, and then what the report says, for good") {
    live_page page{"loss", options_of_two()};
    page.after_step(no_control, step_of_two(1));
    page.end({});
    CHECK(shown(page)["state"] == "over, its report is being written");
    CHECK(shown(page)["is_live"] == true);
    page.finish(R"({"state": "finished"})");
    page.keep_notice("too late");
    CHECK(shown(page) == json{{"state", "finished"}});
  }

  TEST_CASE("a run without a report is over, too") {
    live_page page{"loss", options_of_two()};
    page.finish({});
    CHECK(shown(page)["state"] == "over");
    CHECK(shown(page)["is_live"] == false);
  }

  TEST_CASE("replays the ledger while it is looked at") {
    test::scratch_folder folder;
    live_page page{"loss", options_of_two()};
    page.open(folder.path());
    test::small_job job{{2, 2, sync_policy::latest_token}};
    auto files = std::make_shared<run_folder_hook>(job.strategy, folder.path());
    for (uint64_t number = 1; number <= 40; ++number) {
      files->after_step(no_control, step_of_two(number));
      page.after_step(no_control, step_of_two(number));
    }
    files->finish();
    auto now = shown(page);
    CHECK(now["what_if"].is_null());
    while (now["what_if"].is_null()) {
      std::this_thread::yield();
      now = shown(page);
    }
    CHECK(now["what_if"]["last_step"] == 40);
    auto answers = now["what_if"]["answers"];
    auto is_repair = [](const json& answer) { return answer["option"] == "--repair 1"; };
    auto repair = std::ranges::find_if(answers, is_repair);
    REQUIRE(repair != answers.end());
    CHECK((*repair)["mean"] == doctest::Approx(1)); // as replica 0
  }

  TEST_CASE("a folder without a ledger is no reason to fail") {
    live_page page{"loss", options_of_two()};
    page.open("/nowhere");
    page.after_step(no_control, step_of_two(1));
    auto now = shown(page);
    while (now["what_if"].is_null()) {
      std::this_thread::yield();
      now = shown(page);
    }
    CHECK(now["what_if"]["answers"].empty());
    CHECK(now["what_if"]["why_none"].get<std::string>().find("/nowhere/ledger.csv")
          != std::string::npos);
  }
}

} // namespace live_page_test
