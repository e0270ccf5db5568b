// SPDX-License-Identifier: Apache-2.0
// Goal: `troupe top` shows what a job serves, whatever the window, and trusts nothing of it.
// Method: pages of a small job, and of servers that are none.
#include "tests/doctest.hpp"
#include "tools/top/view.hpp"

namespace top_view_test {

using namespace troupe;

namespace {

constexpr std::string_view metrics = "# HELP troupe_global_step Updates.\n"
                                     "troupe_global_step 1200\n"
                                     "troupe_loss 2.5\n"
                                     "troupe_live_replicas 4\n"
                                     "troupe_needed_gradients 3\n"
                                     "troupe_gradients_total{verdict=\"accepted\"} 3600\n"
                                     "troupe_gradients_total{verdict=\"stale\"} 17\n"
                                     "troupe_step_seconds_sum 2\n"
                                     "troupe_step_seconds_count 100\n";

constexpr std::string_view actors
  = R"([{"name":"chief","state":"waiting","mailbox_depth":0,"handled":9,"errors":0,
         "state_seconds":0.25,"last_message":{"kind":"watch_tick","from":null}},
        {"name":"gone","state":"ended","mailbox_depth":0,"handled":1,"errors":1},
        {"name":"replica 1","state":"computing","mailbox_depth":0,"handled":5,"errors":0,"late":17,
         "state_seconds":1.5,"last_message":{"kind":"Token","from":"token queue"}},
        {"name":"owner w","state":"working","mailbox_depth":12,"handled":7,"errors":0}])";

} // namespace

TEST_SUITE("tools/top/view") {
  TEST_CASE("a page has a heading and a row for each actor, the fullest mailbox first") {
    auto now = read_top_sample(metrics, actors);
    REQUIRE(now);
    CHECK(top_page("here:1", *now, std::nullopt, {.width = 100})
          == "troupe top here:1  step 1,200  50.0 steps/s  loss 2.5  live 4/3\n"
             "gradients: 3,600 accepted, 17 stale, 0 cancelled; 4 actors\n"
             "\n"
             "actor      state           for    late  mailbox    handled  last message\n"
             "owner w    working        0 ns               12          7\n"
             "replica 1  computing    1.50 s      17        0          5  Token from token queue\n"
             "chief      waiting      250 ms                0          9  watch_tick\n"
             "gone       ended          0 ns                0          1    (1 errors)\n");
  }

  TEST_CASE("the page fits into its window") {
    auto now = read_top_sample(metrics, actors);
    REQUIRE(now);
    for (size_t height : {0U, 1U, 3U, 4U, 5U, 6U}) {
      auto page = top_page("here:1", *now, 3.25, {.width = 20, .height = height});
      auto lines = std::count(page.begin(), page.end(), '\n');
      CHECK(lines == static_cast<ptrdiff_t>(height));
      CHECK((page.find("owner") != std::string::npos) == (height > 4));
      for (size_t at = 0; at < page.size(); at = page.find('\n', at) + 1)
        CHECK(page.find('\n', at) - at <= 20);
    }
  }

  TEST_CASE("a job of several tasks has a column for them, and says which are lost or silent") {
    auto tasks = std::string{metrics}
                 + "troupe_task_up{task=\"chief\"} 1\n"
                   "troupe_task_up{task=\"worker:0\"} 0\n"
                   "troupe_task_up{task=\"worker:1\"} 1\n"
                   "troupe_task_up{task=\"worker:2\"} 1\n"
                   "troupe_task_report_age_seconds{task=\"chief\"} 0\n"
                   "troupe_task_report_age_seconds{task=\"worker:0\"} 12\n"
                   "troupe_task_report_age_seconds{task=\"worker:1\"} 6\n";
    auto now = read_top_sample(
      tasks, R"([{"name":"replica 1","task":"worker:0","state":"lost","state_seconds":20}])");
    REQUIRE(now);
    auto page = top_page("x", *now, 3.25, {});
    CHECK(page.find("1 actors of 4 tasks\n"
                    "worker:0: lost, last seen 12.0 s ago\n"
                    "worker:1: silent, last seen 6.00 s ago\n"
                    "worker:2: has not reported yet\n"
                    "\n"
                    "actor      task      state")
          != std::string::npos);
    CHECK(page.find("replica 1  worker:0  lost         20.0 s") != std::string::npos);
  }

  TEST_CASE("the first of many lost tasks are named") {
    std::string tasks{metrics};
    for (int i = 0; i < 9; ++i)
      tasks += "troupe_task_up{task=\"worker:" + std::to_string(i) + "\"} 0\n";
    auto now = read_top_sample(tasks, "[]");
    REQUIRE(now);
    auto page = top_page("x", *now, 3.25, {});
    CHECK(page.find("worker:3: has not reported yet\nand 5 more tasks\n") != std::string::npos);
    CHECK(page.find("worker:4") == std::string::npos);
  }

  TEST_CASE("a measured speed is shown instead of the mean speed") {
    auto now = read_top_sample(metrics, "[]");
    REQUIRE(now);
    CHECK(top_page("x", *now, 3.25, {}).find("3.25 steps/s") != std::string::npos);
  }

  TEST_CASE("a job without a step is shown") {
    auto now = read_top_sample("troupe_global_step 0\ntroupe_loss NaN\n", "[]");
    REQUIRE(now);
    CHECK(top_page("x", *now, std::nullopt, {}).find("step 0  - steps/s  loss -")
          != std::string::npos);
  }

  TEST_CASE("an age that cannot be is none") {
    auto now = read_top_sample(
      metrics, R"([{"name":"a","state_seconds":-1e300,"last_message":{"kind":"Token"}}])");
    REQUIRE(now);
    CHECK(top_page("x", *now, std::nullopt, {}).find(" 0 ns ") != std::string::npos);
  }

  TEST_CASE("names cannot write to the terminal") {
    auto now = read_top_sample(metrics, R"([{"name":"a\u001b[2Jb\n","state":"waiting"}])");
    REQUIRE(now);
    auto page = top_page("x", *now, std::nullopt, {});
    CHECK(page.find('\x1b') == std::string::npos);
    CHECK(page.find("a?[2Jb?") != std::string::npos);
  }

  TEST_CASE("values of other types than expected are passed over") {
    auto now = read_top_sample(metrics, R"([7, {"name":5,"mailbox_depth":-1,"last_message":[]}])");
    REQUIRE(now);
    CHECK(now->actors.size() == 1);
    CHECK(now->actors[0].mailbox_depth == 0);
  }

  TEST_CASE("answers of another program are refused") {
    CHECK(!read_top_sample("", "[]"));
    CHECK(!read_top_sample("<html>", "[]"));
    CHECK(!read_top_sample("troupe_global_steps 4\n", "[]"));
    CHECK(!read_top_sample(metrics, "{}"));
    CHECK(!read_top_sample(metrics, "[1,"));
    CHECK(read_top_sample(metrics, "x").error().code == errc::malformed);
  }
}

} // namespace top_view_test
