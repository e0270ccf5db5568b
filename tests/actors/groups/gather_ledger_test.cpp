// SPDX-License-Identifier: Apache-2.0
// Goal: the first answers count until there are enough, and each member is settled once. Method:
// answers and failures in chosen orders.
#include "actors/groups/gather_ledger.hpp"
#include "tests/doctest.hpp"

namespace gather_ledger_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_SUITE("actors/groups/gather_ledger") {
  TEST_CASE("a question is over with the last answer that is wanted") {
    gather_ledger ledger{3, 2, false, 1s};
    CHECK(ledger.answer(2, 3s));
    CHECK_FALSE(ledger.is_over());
    CHECK(ledger.answer(0, 4s));
    CHECK(ledger.is_over());
    CHECK(ledger.is_enough());
    ledger.end(4s);
    CHECK(ledger.members()[2].state == member_status::counted);
    CHECK(ledger.members()[2].took == 2s);
    CHECK(ledger.members()[1].state == member_status::late);
    CHECK(ledger.members()[1].why.code == errc::cancelled);
  }

  TEST_CASE("a question that awaits the late goes on until all are settled") {
    gather_ledger ledger{3, 1, true, 0s};
    ledger.answer(1, 1s);
    CHECK_FALSE(ledger.is_over());
    ledger.answer(0, 2s);
    ledger.fail(2, member_status::lost, {errc::unavailable, "gone"}, 3s);
    CHECK(ledger.is_over());
    CHECK(ledger.members()[0].state == member_status::late);
    CHECK(ledger.members()[0].has_answer);
  }

  TEST_CASE("a member is settled once") {
    gather_ledger ledger{2, 2, false, 0s};
    CHECK(ledger.fail(0, member_status::failed, {errc::malformed, "no"}, 1s));
    CHECK_FALSE(ledger.answer(0, 2s));
    CHECK_FALSE(ledger.fail(0, member_status::lost, {errc::unavailable, "gone"}, 2s));
    CHECK(ledger.members()[0].state == member_status::failed);
    CHECK(ledger.answer(1, 2s));
    CHECK_FALSE(ledger.answer(1, 3s));
    CHECK(ledger.is_over());
    CHECK_FALSE(ledger.is_enough());
  }

  TEST_CASE("members without an answer are late when the time is over") {
    gather_ledger ledger{2, 2, false, 1s};
    ledger.answer(0, 2s);
    ledger.end(3s);
    CHECK(ledger.is_over());
    CHECK(ledger.members()[1].why == error{errc::deadline_exceeded, "has not answered in 2.0 s"});
  }
}

} // namespace gather_ledger_test
