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
         "last_message":{"kind":"watch_tick","from":null,"age_seconds":0.25}},
        {"name":"gone","state":"ended","mailbox_depth":0,"handled":1,"errors":1},
        {"name":"replica 1","state":"working","mailbox_depth":0,"handled":5,"errors":0,
         "last_message":{"kind":"Token","from":"token queue","age_seconds":1.5}},
        {"name":"owner w","state":"working","mailbox_depth":12,"handled":7,"errors":0}])";

} // namespace

TEST_SUITE("tools/top/view") {
  TEST_CASE("a page has a heading and a row for each actor, the fullest mailbox first") {
    auto now = read_top_sample(metrics, actors);
    REQUIRE(now);
    CHECK(top_page("here:1", *now, std::nullopt, {})
          == "troupe top here:1  step 1,200  50.0 steps/s  loss 2.5  live 4/3\n"
             "gradients: 3,600 accepted, 17 stale, 0 cancelled; 4 actors\n"
             "\n"
             "actor      state    mailbox    handled         age  last message\n"
             "owner w    working       12          7\n"
             "chief      waiting        0          9      250 ms  watch_tick\n"
             "replica 1  working        0          5      1.50 s  Token from token queue\n"
             "gone       ended          0          1                (1 errors)\n");
  }

  TEST_CASE("the page fits into its window") {
    auto now = read_top_sample(metrics, actors);
    REQUIRE(now);
    for (size_t height : {0U, 1U, 4U, 5U, 6U}) {
      auto page = top_page("here:1", *now, 3.25, {.width = 20, .height = height});
      auto lines = std::count(page.begin(), page.end(), '\n');
      CHECK(lines == std::max<ptrdiff_t>(4, static_cast<ptrdiff_t>(height)));
      CHECK((page.find("owner") != std::string::npos) == (height > 4));
      for (size_t at = 0; at < page.size(); at = page.find('\n', at) + 1)
        CHECK(page.find('\n', at) - at <= 20);
    }
  }

  TEST_CASE("what was measured stands for the mean speed") {
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
      metrics, R"([{"name":"a","last_message":{"kind":"Token","age_seconds":-1e300}}])");
    REQUIRE(now);
    CHECK(top_page("x", *now, std::nullopt, {}).find(" 0 ns  Token\n") != std::string::npos);
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

  TEST_CASE("what is no job of ours is refused") {
    CHECK(!read_top_sample("", "[]"));
    CHECK(!read_top_sample("<html>", "[]"));
    CHECK(!read_top_sample("troupe_global_steps 4\n", "[]"));
    CHECK(!read_top_sample(metrics, "{}"));
    CHECK(!read_top_sample(metrics, "[1,"));
    CHECK(read_top_sample(metrics, "x").error().code == errc::malformed);
  }
}

} // namespace top_view_test
