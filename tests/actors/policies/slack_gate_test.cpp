// SPDX-License-Identifier: Apache-2.0
// Goal: no replica runs further ahead of the slowest than the slack, and none waits for one that is
// gone. Method: waiters are numbers, replicas arrive and leave by hand.
#include "actors/policies/slack_gate.hpp"
#include "tests/doctest.hpp"

#include <random>

namespace slack_gate_test {

using namespace troupe;

namespace {

using gate = slack_gate<uint32_t>;
using waiters = std::vector<uint32_t>;

/// A replica arrives that is its own waiter.
waiters arrive(gate& at, uint32_t replica) {
  return at.arrive(replica, replica);
}

} // namespace

TEST_SUITE("actors/policies/slack_gate") {
  TEST_CASE("without slack all wait for the slowest, and go on together") {
    gate all{3, 0};
    for (int round = 0; round < 3; ++round) {
      CHECK(arrive(all, 2).empty());
      CHECK(arrive(all, 0).empty());
      CHECK(all.waiting().size() == 2);
      CHECK(arrive(all, 1) == waiters{2, 0, 1});
      CHECK(all.waiting().empty());
    }
  }

  TEST_CASE("a replica may be ahead by the slack, and no further") {
    gate pair{2, 2};
    CHECK(arrive(pair, 0) == waiters{0});
    CHECK(arrive(pair, 0) == waiters{0});
    CHECK(arrive(pair, 0).empty());
    CHECK(arrive(pair, 1) == waiters{0, 1});
    CHECK(arrive(pair, 0).empty());
  }

  TEST_CASE("a slack beyond all clocks is none") {
    gate pair{2, UINT64_MAX};
    CHECK(arrive(pair, 0) == waiters{0});
    CHECK(arrive(pair, 1) == waiters{1});
    CHECK(arrive(pair, 0) == waiters{0});
  }

  TEST_CASE("a replica that leaves is waited for no longer") {
    gate all{3, 0};
    CHECK(arrive(all, 0).empty());
    CHECK(arrive(all, 1).empty());
    CHECK(all.leave(2) == waiters{0, 1});
    CHECK(all.leave(2).empty());
    CHECK(arrive(all, 0).empty());
    CHECK(arrive(all, 1) == waiters{0, 1});
  }

  TEST_CASE("one that is not the slowest leaves without a change") {
    gate all{3, 0};
    CHECK(arrive(all, 0).empty());
    CHECK(all.leave(0).empty());
    CHECK(arrive(all, 1).empty());
    CHECK(arrive(all, 2) == waiters{0, 1, 2}); // no replica holds up one that asked and is gone
  }

  TEST_CASE("one that comes back begins with the clock of the slowest") {
    gate pair{2, 0};
    CHECK(pair.leave(1).empty());
    for (int i = 0; i < 5; ++i)
      CHECK(arrive(pair, 0) == waiters{0});
    CHECK(arrive(pair, 1) == waiters{}); // at 6, one ahead of replica 0
    CHECK(arrive(pair, 0) == waiters{1, 0});
  }

  TEST_CASE("replicas that are not counted pass") {
    gate none;
    CHECK(arrive(none, 7) == waiters{7});
    CHECK(none.leave(7).empty());
  }

  TEST_CASE("an opened gate lets go of all") {
    gate pair{2, 0};
    CHECK(arrive(pair, 0).empty());
    CHECK(pair.open() == waiters{0});
    CHECK(pair.waiting().empty());
  }

  TEST_CASE("one replica can always go on, in any order") {
    std::minstd_rand random{7};
    for (uint64_t slack = 0; slack < 4; ++slack) {
      gate all{5, slack};
      std::vector<uint64_t> clocks(5, 0);
      std::vector<bool> computes(5, true);
      for (int i = 0; i < 2000; ++i) {
        auto replica = static_cast<uint32_t>(random() % 5);
        if (!computes[replica]) continue;
        computes[replica] = false;
        ++clocks[replica];
        for (auto released : arrive(all, replica))
          computes[released] = true;
        auto slowest = *std::ranges::min_element(clocks);
        for (size_t one = 0; one < 5; ++one)
          CHECK(computes[one] == (clocks[one] <= slowest + slack));
      }
    }
  }
}

} // namespace slack_gate_test
