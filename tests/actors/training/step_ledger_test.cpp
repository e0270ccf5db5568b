// SPDX-License-Identifier: Apache-2.0
// Goal: a step's record says once of every replica's gradient what became of it, however many
// variables it was for. Method: reports of accumulators, made by hand.
#include "actors/training/step_ledger.hpp"
#include "tests/doctest.hpp"
#include "tests/replica_list.hpp"

namespace step_ledger_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using arrivals = std::vector<arrival>;

arrival at(job_time when, uint32_t replica, uint64_t local_step, uint64_t accumulator_step,
           uint64_t iteration = 0) {
  return {
    {.replica = replica, .local_step = local_step, .iteration = iteration}, when, accumulator_step};
}

void report(step_ledger& ledger, const arrivals& accepted, const arrivals& stale = {}) {
  ledger.add(accepted, stale);
}

step_record close(step_ledger& ledger) {
  REQUIRE(ledger.complete());
  step_record record;
  ledger.close(record);
  return record;
}

} // namespace

TEST_SUITE("actors/training/step_ledger") {
  TEST_CASE("a step is complete when every accumulator has reported") {
    step_ledger ledger{2};
    CHECK_FALSE(ledger.complete());
    report(ledger, {});
    CHECK_FALSE(ledger.complete());
    report(ledger, {});
    CHECK(ledger.complete());
    static_cast<void>(close(ledger));
    CHECK_FALSE(ledger.complete());
  }

  TEST_CASE("contributions are in order of arrival, equal times in order of replicas") {
    step_ledger ledger{1};
    report(ledger, {at(3ns, 4, 0, 0), at(1ns, 2, 0, 0), at(3ns, 0, 0, 0), at(2ns, 9, 0, 0)},
           {at(2ns, 7, 0, 2), at(1ns, 8, 1, 2)});
    auto record = close(ledger);
    CHECK(replicas_of(record.accepted) == replica_list{2, 9, 0, 4});
    CHECK(replicas_of(record.stale) == replica_list{8, 7});
  }

  TEST_CASE("a contribution keeps what the replica said of itself") {
    step_ledger ledger{1};
    arrival came{{.replica = 3,
                  .examples = 32,
                  .local_step = 5,
                  .iteration = 8,
                  .compute = 11ns,
                  .waited = 13ns,
                  .loss = 0.5},
                 17ns,
                 5};
    report(ledger, {came});
    auto record = close(ledger);
    REQUIRE(record.accepted.size() == 1);
    const auto& gradient = record.accepted[0];
    CHECK(gradient.replica == 3);
    CHECK(gradient.examples == 32);
    CHECK(gradient.local_step == 5);
    CHECK(gradient.staleness == 0);
    CHECK(gradient.compute == 11ns);
    CHECK(gradient.waited == 13ns);
    CHECK(gradient.loss == 0.5);
    CHECK(gradient.arrived == 17ns);
  }

  TEST_CASE("a stale gradient is behind by as many steps as it missed") {
    step_ledger ledger{1};
    report(ledger, {}, {at(1ns, 0, 3, 4), at(2ns, 1, 0, 4)});
    auto record = close(ledger);
    REQUIRE(record.stale.size() == 2);
    CHECK(record.stale[0].staleness == 1);
    CHECK(record.stale[1].staleness == 4);
  }

  TEST_CASE("a gradient ahead of its accumulator is not behind") {
    step_ledger ledger{1};
    report(ledger, {at(1ns, 0, 7, 4)});
    auto record = close(ledger);
    REQUIRE(record.accepted.size() == 1);
    CHECK(record.accepted[0].staleness == 0);
  }

  TEST_CASE("a gradient for several variables counts once, and arrives with its last part") {
    step_ledger ledger{3};
    report(ledger, {at(1ns, 0, 0, 0), at(5ns, 1, 0, 0)});
    report(ledger, {at(9ns, 0, 0, 0), at(2ns, 1, 0, 0)});
    CHECK_FALSE(ledger.complete());
    report(ledger, {at(3ns, 0, 0, 0), at(2ns, 1, 0, 0)});
    CHECK(ledger.last_arrival() == 9ns);
    auto record = close(ledger);
    CHECK(replicas_of(record.accepted) == replica_list{1, 0});
    CHECK(record.accepted[0].arrived == 5ns);
    CHECK(record.accepted[1].arrived == 9ns);
  }

  TEST_CASE("a gradient is stale if a part of it is, and is told of when all parts are judged") {
    step_ledger ledger{2};
    report(ledger, {at(1ns, 0, 0, 0), at(2ns, 1, 0, 0)});
    report(ledger, {at(1ns, 0, 0, 0)});
    auto first = close(ledger);
    CHECK(replicas_of(first.accepted) == replica_list{0});
    CHECK(first.stale.empty());
    report(ledger, {at(9ns, 0, 1, 1, 1)});
    report(ledger, {at(8ns, 0, 1, 1, 1)}, {at(3ns, 1, 0, 1)});
    auto second = close(ledger);
    CHECK(replicas_of(second.accepted) == replica_list{0});
    CHECK(replicas_of(second.stale) == replica_list{1});
    CHECK(second.stale[0].staleness == 1);
    CHECK(second.stale[0].arrived == 3ns);
  }

  TEST_CASE("a gradient that leaves variables out is told of one step later") {
    step_ledger ledger{2};
    report(ledger, {at(1ns, 0, 0, 0), at(2ns, 1, 0, 0)});
    report(ledger, {at(1ns, 0, 0, 0)});
    CHECK(replicas_of(close(ledger).accepted) == replica_list{0});
    for (uint64_t step = 1; step < 4; ++step) {
      report(ledger, {at(9ns, 0, step, step, step)});
      report(ledger, {at(9ns, 0, step, step, step)});
      auto record = close(ledger);
      CHECK(replicas_of(record.accepted) == (step == 1 ? replica_list{1, 0} : replica_list{0}));
    }
  }

  TEST_CASE("a part that comes after its gradient is in the books makes no second one") {
    step_ledger ledger{2};
    report(ledger, {at(1ns, 0, 0, 0), at(2ns, 1, 0, 0)});
    report(ledger, {at(1ns, 0, 0, 0)});
    static_cast<void>(close(ledger));
    for (uint64_t step = 1; step < 4; ++step) {
      arrivals late;
      if (step == 3) late = {at(50ns, 1, 0, step)};
      report(ledger, {at(9ns, 0, step, step, step)});
      report(ledger, {at(9ns, 0, step, step, step)}, late);
      CHECK(ledger.last_arrival() == 9ns);
      auto record = close(ledger);
      CHECK(replicas_of(record.accepted) == (step == 1 ? replica_list{1, 0} : replica_list{0}));
      CHECK(record.stale.empty());
    }
  }

  TEST_CASE("a replica that is started again gives gradients of its own") {
    step_ledger ledger{2};
    for (uint64_t step = 0; step < 2; ++step) { // of the first, one part has come
      if (step == 0) report(ledger, {at(1ns, 1, 0, 0)});
      if (step == 1) report(ledger, {});
      report(ledger, {});
      CHECK(close(ledger).accepted.size() == step);
    }
    report(ledger, {at(3ns, 1, 2, 2)});
    report(ledger, {at(3ns, 1, 2, 2)});
    auto record = close(ledger);
    CHECK(replicas_of(record.accepted) == replica_list{1});
    CHECK(record.accepted[0].local_step == 2);
  }

  TEST_CASE("a gradient that never was whole is forgotten after some steps") {
    step_ledger ledger{2};
    report(ledger, {at(1ns, 1, 0, 0)});
    for (uint64_t step = 1; step < 20; ++step) {
      if (step > 1) report(ledger, {});
      report(ledger, {});
      CHECK(close(ledger).accepted.size() == (step == 2 ? 1 : 0));
    }
    report(ledger, {}, {at(3ns, 1, 0, 20)});
    report(ledger, {}, {at(3ns, 1, 0, 20)});
    CHECK(replicas_of(close(ledger).stale) == replica_list{1});
  }

  TEST_CASE("a gradient with two parts for one variable is told of at once") {
    step_ledger ledger{1};
    report(ledger, {at(1ns, 0, 0, 0), at(2ns, 0, 0, 0)});
    CHECK(replicas_of(close(ledger).accepted) == replica_list{0});
  }

  TEST_CASE("two gradients of one replica in one step are two") {
    step_ledger ledger{1};
    report(ledger, {at(1ns, 0, 0, 0, 0), at(2ns, 0, 0, 0, 1)});
    CHECK(replicas_of(close(ledger).accepted) == replica_list{0, 0});
  }

  TEST_CASE("the last arrival is that of an accepted gradient") {
    step_ledger ledger{1};
    CHECK(ledger.last_arrival() == 0ns);
    report(ledger, {at(4ns, 0, 1, 1)}, {at(6ns, 1, 0, 1)});
    CHECK(ledger.last_arrival() == 4ns);
  }

  TEST_CASE("a step begins with empty books") {
    step_ledger ledger{1};
    report(ledger, {at(1ns, 0, 0, 0)}, {at(1ns, 1, 0, 1)});
    static_cast<void>(close(ledger));
    report(ledger, {});
    auto record = close(ledger);
    CHECK(record.accepted.empty());
    CHECK(record.stale.empty());
  }

  TEST_CASE("an accepted gradient may be late, where nothing is stale") {
    step_ledger ledger{1};
    report(ledger, {at(1ns, 0, 2, 5), at(2ns, 1, 5, 5)});
    auto record = close(ledger);
    REQUIRE(record.accepted.size() == 2);
    CHECK(record.accepted[0].staleness == 3);
    CHECK(record.accepted[1].staleness == 0);
    CHECK(record.stale.empty());
  }

  TEST_CASE(
    "where training is asynchronous a gradient counts once, however far its parts are apart") {
    step_ledger ledger{2, 0};
    report(ledger, {at(1ns, 0, 0, 0)});
    report(ledger, {at(1ns, 1, 0, 0)});
    CHECK(close(ledger).accepted.empty());
    for (uint64_t step = 1; step < 9; ++step) {
      report(ledger, {at(2ns, 2, 0, step, step)});
      report(ledger, {at(2ns, 2, 0, step, step)});
      CHECK(replicas_of(close(ledger).accepted) == replica_list{2});
    }
    report(ledger, {at(3ns, 1, 0, 9)});
    report(ledger, {at(3ns, 0, 0, 9)});
    auto last = close(ledger);
    CHECK(replicas_of(last.accepted) == replica_list{0, 1});
    CHECK(last.accepted[0].staleness == 9);
  }

  TEST_CASE("the parts that an asynchronous replica left out are known some steps after its next "
            "gradient") {
    step_ledger ledger{2, 1};
    for (uint64_t step = 0; step < 4; ++step) {
      report(ledger, {at(1ns, 0, step, step, step)});
      report(ledger, {});
      CHECK(close(ledger).accepted.size() == (step < 2 ? 0 : 1));
    }
  }
}

} // namespace step_ledger_test
