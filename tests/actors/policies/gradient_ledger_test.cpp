// SPDX-License-Identifier: Apache-2.0
// Goal: each gradient is part of exactly one step or dropped, by rules that need no actor.
// Method: gradients given one by one, and the steps that are closed with them.
#include "actors/policies/gradient_ledger.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

namespace gradient_ledger_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using replica_list = std::vector<uint32_t>;

origin from(uint32_t replica, uint64_t local_step) {
  return {.replica = replica, .local_step = local_step};
}

replica_list replicas_of(const std::vector<arrival>& arrivals) {
  return mapped(arrivals, [](const auto& one) { return one.from.replica; });
}

} // namespace

TEST_SUITE("actors/policies/gradient_ledger") {
  TEST_CASE("a step has all that came before it was closed, in order of arrival") {
    gradient_ledger ledger{7};
    for (uint32_t replica : {3, 1, 2}) {
      REQUIRE_FALSE(ledger.drop_if_late(from(replica, 7), 1ns));
      CHECK(ledger.accept(from(replica, 7), 1ns) == 0);
    }
    CHECK(ledger.given() == 3);
    auto closed = ledger.close_step(2);
    CHECK(replicas_of(closed.accepted) == replica_list{3, 1, 2});
    CHECK(closed.accepted.front().accumulator_step == 7);
    CHECK(ledger.step() == 8);
    CHECK(ledger.given() == 0);
  }

  TEST_CASE("a gradient of a past step is dropped, and told with the step that is closed next") {
    gradient_ledger ledger{3};
    CHECK(ledger.drop_if_late(from(5, 1), 2ns));
    static_cast<void>(ledger.accept(from(0, 3), 3ns));
    auto closed = ledger.close_step(1);
    REQUIRE(replicas_of(closed.stale) == replica_list{5});
    CHECK(closed.stale.front().accumulator_step == 3);
    CHECK(closed.stale.front().arrived == 2ns);
    static_cast<void>(ledger.accept(from(0, 4), 3ns));
    CHECK(ledger.close_step(1).stale.empty());
  }

  TEST_CASE("where one gradient of a replica counts, a second one is dropped until the next step") {
    gradient_ledger ledger{0, true};
    CHECK(ledger.accept(from(2, 0), 1ns) == 1);
    CHECK(ledger.drop_if_late(from(2, 0), 2ns));
    CHECK_FALSE(ledger.drop_if_late(from(1, 0), 2ns));
    auto closed = ledger.close_step(1);
    CHECK(closed.stale.front().accumulator_step == 1);
    CHECK_FALSE(ledger.drop_if_late(from(2, 1), 3ns));
  }

  TEST_CASE("where training is asynchronous nothing is late, and what is more waits") {
    gradient_ledger ledger{0, false, asynchronous_rule{sync_policy::k_batch_async, 2}};
    static_cast<void>(ledger.close_step(0));
    CHECK_FALSE(ledger.drop_if_late(from(0, 0), 1ns));
    CHECK(ledger.accept(from(0, 0), 1ns) == 1);
    CHECK(ledger.accept(from(1, 0), 2ns) == 2);
    CHECK(ledger.accept(from(2, 1), 3ns) == 2);
    auto first = ledger.close_step(2);
    CHECK(replicas_of(first.accepted) == replica_list{0, 1});
    CHECK(ledger.given() == 1);
    static_cast<void>(ledger.accept(from(0, 2), 4ns));
    auto second = ledger.close_step(2);
    CHECK(replicas_of(second.accepted) == replica_list{2, 0});
    CHECK(second.accepted.front().accumulator_step == 2); // not the one that it came for
  }

  TEST_CASE("asynchronous gradients that never come count as given") {
    gradient_ledger ledger{0, false, asynchronous_rule{sync_policy::k_async, 3}};
    ledger.count_missing(2, 1); // of another step
    CHECK(ledger.given() == 0);
    ledger.count_missing(2, 0);
    static_cast<void>(ledger.accept(from(0, 0), 1ns));
    CHECK(ledger.given() == 3);
    CHECK(replicas_of(ledger.close_step(3).accepted) == replica_list{0});
    CHECK(ledger.given() == 0);
    gradient_ledger synchronous;
    synchronous.count_missing(2, 0);
    CHECK(synchronous.given() == 0);
  }

  TEST_CASE("a gradient that is forgotten may be given again") {
    gradient_ledger ledger{4, true};
    static_cast<void>(ledger.accept(from(2, 4), 1ns));
    CHECK(ledger.drop_if_late(from(1, 0), 1ns));
    ledger.set_step(6);
    ledger.forget();
    CHECK_FALSE(ledger.drop_if_late(from(2, 6), 2ns));
    static_cast<void>(ledger.accept(from(2, 6), 2ns));
    auto closed = ledger.close_step(1);
    CHECK(closed.accepted.size() == 1);
    CHECK(closed.stale.empty());
  }
}

} // namespace gradient_ledger_test
