// SPDX-License-Identifier: Apache-2.0
// Goal: every replica is counted once, however often it comes and goes. Method: replicas that come,
// leave and are lost as the test says.
#include "actors/training/replica_roster.hpp"
#include "tests/doctest.hpp"

namespace replica_roster_test {

using namespace troupe;
using namespace std::chrono_literals;
using presence = replica_roster::presence;
using replica_list = std::vector<uint32_t>;

namespace {

replica_roster roster_of(uint32_t replicas, const replica_list& absent = {}) {
  return {replicas, absent};
}

} // namespace

TEST_SUITE("actors/training/replica_roster") {
  TEST_CASE("all are on their way but those that never come") {
    auto roster = roster_of(4, {2, 2, 9});
    CHECK(roster.size() == 4);
    CHECK(roster.left() == 3);
    CHECK(roster.count(presence::coming) == 3);
    CHECK(roster.count(presence::gone) == 1);
    CHECK(roster.live().empty());
    CHECK(roster.has(3));
    CHECK_FALSE(roster.has(4));
  }

  TEST_CASE("replicas that are there stand in the order of their indices") {
    auto roster = roster_of(4);
    for (uint32_t replica : {3, 0, 2})
      roster.join(replica);
    CHECK(roster.live() == replica_list{0, 2, 3});
    CHECK(roster.all_expected() == replica_list{0, 1, 2, 3});
    REQUIRE(roster.leave(2));
    CHECK(roster.all_expected() == replica_list{0, 1, 3});
    roster.join(2);
    CHECK(roster.count(presence::live) == 3);
    CHECK(roster.left() == 4);
  }

  TEST_CASE("a replica leaves once, and may be said never to come") {
    auto roster = roster_of(2);
    roster.join(0);
    CHECK(roster.leave(0));
    CHECK_FALSE(roster.leave(0));
    CHECK(roster.leave(1));
    CHECK_FALSE(roster.leave(1));
    CHECK_FALSE(roster.leave(2));
    CHECK(roster.left() == 0);
  }

  TEST_CASE("a new life may join before the former one is missed") {
    auto roster = roster_of(1);
    roster.join(0);
    roster.join(0);
    CHECK(roster.count(presence::live) == 1);
    CHECK(roster.leave(0));
    CHECK(roster.left() == 0);
  }

  TEST_CASE("a lost replica is awaited until it is back") {
    auto roster = roster_of(2);
    roster.join(1);
    REQUIRE(roster.leave(1));
    roster.await(1, 5s, false);
    CHECK(roster.awaited() == replica_list{1});
    CHECK(roster.since(1) == 5s);
    CHECK(roster.left() == 2);
    CHECK_FALSE(roster.leave(1)); // it is lost already
    roster.join(1);
    CHECK(roster.awaited().empty());
    CHECK(roster.live() == replica_list{1});
  }

  TEST_CASE("a replica that is awaited left as asked, or was lost, the last time") {
    auto roster = roster_of(1);
    for (auto is_asked : {true, false}) {
      roster.join(0);
      REQUIRE(roster.leave(0));
      roster.await(0, 1s, is_asked);
      CHECK(roster.left_as_asked(0) == is_asked);
    }
  }

  TEST_CASE("a replica that was given up may come all the same") {
    auto roster = roster_of(1);
    roster.join(0);
    REQUIRE(roster.leave(0));
    roster.await(0, 1s, false);
    roster.give_up(0);
    CHECK(roster.left() == 0);
    CHECK_FALSE(roster.leave(0));
    roster.join(0);
    CHECK(roster.left() == 1);
    CHECK(roster.leave(0));
  }
}

} // namespace replica_roster_test
