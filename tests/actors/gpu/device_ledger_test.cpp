// SPDX-License-Identifier: Apache-2.0
// Goal: work of a stream is begun in order, streams do not wait for each other, and only what had
// its turn is late. Method: tickets and times given by hand.
#include "actors/gpu/device_ledger.hpp"
#include "tests/doctest.hpp"

namespace device_ledger_test {

using namespace troupe;
using namespace std::chrono_literals;

using tickets = std::vector<uint64_t>;

TEST_SUITE("actors/gpu/device_ledger") {
  TEST_CASE("all that waits in a stream is begun once the work before it is launched") {
    device_ledger ledger;
    auto first = ledger.add(0, "a", 1s, 0s);
    CHECK(ledger.begin_waiting(0) == tickets{first});
    auto second = ledger.add(0, "b", 1s, 0s), third = ledger.add(0, "c", 1s, 0s);
    CHECK(ledger.begin_waiting(0).empty());
    ledger.launched(first);
    CHECK(ledger.begin_waiting(0) == tickets{second, third});
    auto fourth = ledger.add(0, "d", 1s, 0s);
    ledger.complete(first, 0s);
    ledger.launched(second);
    CHECK(ledger.begin_waiting(0).empty());
    ledger.launched(third);
    CHECK(ledger.begin_waiting(0) == tickets{fourth});
    ledger.launched(fourth);
    for (auto ticket : {second, third, fourth})
      ledger.complete(ticket, 0s);
    CHECK(ledger.begin_waiting(0).empty());
    CHECK(ledger.is_empty());
  }

  TEST_CASE("streams do not wait for each other") {
    device_ledger ledger;
    auto first = ledger.add(0, "a", 1s, 0s);
    auto second = ledger.add(1, "b", 1s, 0s);
    CHECK(ledger.begin_waiting(0) == tickets{first});
    CHECK(ledger.begin_waiting(1) == tickets{second});
  }

  TEST_CASE("work that waits behind other work is not late: its time begins with its turn") {
    device_ledger ledger;
    auto first = ledger.add(0, "a", 10s, 0s);
    ledger.add(0, "b", 1s, 0s);
    CHECK(ledger.next_due() == 10s);
    CHECK(!ledger.overdue(9s));
    ledger.complete(first, 9s);
    CHECK(!ledger.overdue(9s + 999ms));
    REQUIRE(ledger.overdue(10s));
    CHECK(ledger.overdue(10s)->purpose == "b");
    CHECK(ledger.overdue(10s)->timeout == 1s);
  }

  TEST_CASE("work that takes as long as it may is late, on whichever stream it is") {
    device_ledger ledger;
    ledger.add(0, "a", 10s, 0s);
    ledger.add(3, "b", 2s, 1s);
    CHECK(ledger.next_due() == 3s);
    CHECK(!ledger.overdue(2s));
    REQUIRE(ledger.overdue(3s));
    CHECK(ledger.overdue(3s)->purpose == "b");
  }

  TEST_CASE("without work nothing is due, and tickets that are not known change nothing") {
    device_ledger ledger;
    CHECK(!ledger.next_due());
    ledger.launched(7);
    ledger.complete(7, 0s);
    CHECK(!ledger.overdue(100h));
  }
}

} // namespace device_ledger_test
