// SPDX-License-Identifier: Apache-2.0
// Goal: an actor looks when a deadline may be over, and no more ticks are on their way for it.
// Method: ticks in a list, which come when they are due, or too early.
#include "actors/world/look_plan.hpp"
#include "tests/doctest.hpp"

#include <set>

namespace look_plan_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_SUITE("actors/world/look_plan") {
  TEST_CASE("a look that is planned serves all that are wanted later") {
    look_plan plan;
    CHECK(plan.wants_tick(5s));
    CHECK_FALSE(plan.wants_tick(5s));
    CHECK_FALSE(plan.wants_tick(7s));
    CHECK(plan.wants_tick(3s));
  }

  TEST_CASE("with each tick, one look is planned at most") {
    look_plan plan;
    std::multiset<job_time> ticks;
    auto want = [&](job_time due) {
      if (plan.wants_tick(due)) ticks.insert(due);
    };
    size_t looks = 0;
    want(60s);
    for (auto now = 0s; now < 100s; ++now) {
      while (!ticks.empty() && *ticks.begin() <= now) {
        ticks.erase(ticks.begin());
        if (!plan.takes_tick(now)) continue;
        ++looks;
        want(now + 60s);
      }
      want(now + 1s); // a call with a short deadline, each second
    }
    CHECK(looks == 99);
    CHECK(ticks.size() <= 61); // those of the patient call that have not come yet
  }

  TEST_CASE("a tick that comes too early by the actor's clock is a look, if it is the last one") {
    look_plan plan;
    CHECK(plan.wants_tick(5s));
    CHECK(plan.takes_tick(4s));
    CHECK(plan.wants_tick(10s));
    CHECK(plan.wants_tick(6s));
    CHECK_FALSE(plan.takes_tick(5s));
    CHECK(plan.takes_tick(6s));
  }
}

} // namespace look_plan_test
