// SPDX-License-Identifier: Apache-2.0
// Goal: a thread looks for messages where that is of use, for a bounded time, and not where others
// need its processor. Method: facts of machines, and times, that the test makes up.
#include "actors/policies/spin.hpp"
#include "tests/doctest.hpp"

#include <chrono>

namespace spin_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// A thread that waits, on a clock of its own.
struct waiting_thread {
  explicit waiting_thread(spin_policy::duration bound) : policy(bound) {}

  // A wait in which nothing is found, each look taking so long. @returns How often it looked.
  int look_in_vain(spin_policy::duration each = 2us) {
    if (!policy.begins(now)) return 0;
    auto looks = 1;
    for (now += each; policy.goes_on(now); now += each)
      ++looks;
    return looks;
  }

  // The next wait, in which it sleeps for so long after looks that find nothing.
  bool looks_then_sleeps(spin_policy::duration sleep) {
    auto looks = look_in_vain();
    now += sleep;
    policy.has_slept(sleep);
    return looks > 0;
  }

  // Looks in the next wait, and finds a message so much later, if it looks at all.
  bool finds_after(spin_policy::duration time) {
    if (!policy.begins(now)) return false;
    now += time;
    policy.has_found();
    return true;
  }

  // So many of the next waits, all long, begin with looks.
  int looking_waits(int waits) {
    auto looking = 0;
    for (int i = 0; i < waits; ++i)
      looking += looks_then_sleeps(10ms);
    return looking;
  }

  spin_policy policy;
  spin_policy::time_point now{1h};
};

} // namespace

TEST_SUITE("actors/policies/spin") {
  TEST_CASE("a control group's quota is its share of a period, and may be none") {
    CHECK(quota_of("150000 100000") == 1.5);
    CHECK(quota_of("200000 100000\n") == 2);
    CHECK(quota_of("50000\n 100000\n") == 0.5); // two files of version 1
    for (const auto* text : {"max 100000", "-1\n 100000\n", "", " ", "100000", "100000 0",
                             "0 100000", "1 -1", "nan nan", "1e999 1", "a b"})
      CHECK_FALSE(quota_of(text));
  }

  TEST_CASE("a process of this machine has a processor at least, and a quota above 0 if any") {
    auto facts = processors_of_this_process();
    CHECK(facts.processors > 0);
    CHECK(facts.quota.value_or(1) > 0);
  }

  TEST_CASE("a thread looks by itself where there are processors to look with") {
    CHECK(usual_spin({.processors = 2}) == 50us);
    CHECK(usual_spin({.processors = 64, .quota = 64}) == 50us);
    CHECK(usual_spin({.processors = 1}) == 0us);
    CHECK(usual_spin({.processors = 64, .quota = 63.5}) == 0us);
    CHECK(usual_spin({.processors = 2, .quota = 0.5}) == 0us);
  }

  TEST_CASE("with a bound of 0 it never looks") {
    waiting_thread thread{0us};
    for (int i = 0; i < 100; ++i)
      CHECK_FALSE(thread.looks_then_sleeps(1us));
  }

  TEST_CASE("looks end at the bound, of which the time of other threads is no part") {
    CHECK(waiting_thread{50us}.look_in_vain(2us) == 25);
    CHECK(waiting_thread{50us}.look_in_vain(900us) == 10); // each counts as 5
    CHECK(waiting_thread{7us}.look_in_vain(2us) == 4);
  }

  TEST_CASE("a thread that always finds something looks in every wait") {
    waiting_thread thread{50us};
    for (int i = 0; i < 1000; ++i)
      CHECK(thread.finds_after(30us));
  }

  TEST_CASE("after looks in vain it sleeps at once for 1, 3, 7, 15, 31, 63, and again 63 waits") {
    waiting_thread thread{50us};
    for (int skipped : {1, 3, 7, 15, 31, 63, 63, 63}) {
      CHECK(thread.looks_then_sleeps(10ms));
      CHECK(thread.looking_waits(skipped) == 0);
    }
  }

  TEST_CASE("when a message comes soon after it has slept, it looks again") {
    waiting_thread thread{50us};
    CHECK(thread.looking_waits(1000) == 20);
    CHECK_FALSE(thread.looks_then_sleeps(100us)); // as late as twice the bound: no sign
    CHECK_FALSE(thread.looks_then_sleeps(60us));
    CHECK(thread.finds_after(30us));
    CHECK(thread.finds_after(30us));
  }

  TEST_CASE("a thread that loses its processor sleeps for 16 ms, then longer, up to a second") {
    waiting_thread thread{50us};
    for (auto pause : {16ms, 32ms, 64ms, 128ms, 256ms, 512ms, 1000ms, 1000ms}) {
      CHECK(thread.look_in_vain(4ms) == 1);
      thread.now += pause - 1us;
      CHECK_FALSE(thread.policy.begins(thread.now));
      thread.now += 1us;
    }
    CHECK(thread.finds_after(30us));
    thread.now += 10s;
    CHECK(thread.look_in_vain(4ms) == 1); // for the first time since long
    thread.now += 16ms;
    CHECK(thread.finds_after(30us));
  }
}

} // namespace spin_test
