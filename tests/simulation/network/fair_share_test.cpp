// SPDX-License-Identifier: Apache-2.0
// Goal: transfers share cards evenly, at both ends, and what one leaves the others get. Method: few
// transfers, and times that can be told by heart.
#include "simulation/network/fair_share.hpp"
#include "tests/doctest.hpp"

namespace fair_share_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

using numbers = std::vector<uint64_t>;

} // namespace

TEST_SUITE("simulation/network/fair_share") {
  TEST_CASE("a transfer alone has the whole card") {
    fair_share cards{100};
    auto only = cards.begin(0, 1, 50, 1, 2s);
    CHECK(cards.next_end(2s) == 2500ms);
    CHECK(cards.finish(2499ms).empty());
    CHECK(cards.finish(2500ms) == numbers{only});
    CHECK_FALSE(cards.next_end(3s));
  }

  TEST_CASE("a transfer that takes longer than a clock counts is not free") {
    fair_share cards{10};
    cards.begin(0, 1, 1e15, 1, 0s);
    CHECK(cards.next_end(0s) == 1'000'000'000s);
  }

  TEST_CASE("two share a card in one direction, and not across directions") {
    fair_share cards{100};
    auto first = cards.begin(0, 1, 100, 1, 0s);
    auto second = cards.begin(0, 2, 50, 1, 0s);
    auto other = cards.begin(1, 0, 100, 1, 0s);
    CHECK(cards.next_end(0s) == 1s);
    CHECK(cards.finish(1s) == numbers{second, other});
    // The first has sent half of its bytes, and now has the card for itself.
    CHECK(cards.next_end(1s) == 1500ms);
    CHECK(cards.finish(1500ms) == numbers{first});
  }

  TEST_CASE("the busier end decides") {
    fair_share cards{100};
    for (uint32_t from = 0; from < 4; ++from)
      static_cast<void>(cards.begin(from, 9, 100, 1, 0s));
    static_cast<void>(cards.begin(0, 8, 100, 1, 0s));
    CHECK(cards.next_end(0s) == 2s);
    CHECK(cards.finish(2s) == numbers{4});
    CHECK(cards.finish(4s) == numbers{0, 1, 2, 3});
  }

  TEST_CASE("one transfer that is given up leaves its share to the others") {
    fair_share cards{100};
    auto kept = cards.begin(0, 1, 100, 1, 0s);
    auto recalled = cards.begin(2, 1, 100, 1, 0s);
    CHECK(cards.next_end(0s) == 2s);
    CHECK(cards.sent_by(2) == numbers{recalled});
    CHECK(cards.sent_by(7).empty());
    cards.give_up_one(recalled, 1s);
    CHECK(cards.sent_by(2).empty());
    CHECK(cards.next_end(1s) == 1500ms);
    CHECK(cards.finish(1500ms) == numbers{kept});
  }

  TEST_CASE("a slow link slows its transfers, and what is given up makes room") {
    fair_share cards{100};
    auto slow = cards.begin(0, 1, 100, 0.5, 0s);
    CHECK(cards.next_end(0s) == 2s);
    auto late = cards.begin(2, 1, 100, 1, 1s);
    CHECK(cards.give_up(0, 1s) == numbers{slow});
    CHECK(cards.next_end(1s) == 2s);
    CHECK(cards.finish(2s) == numbers{late});
  }
}

} // namespace fair_share_test
