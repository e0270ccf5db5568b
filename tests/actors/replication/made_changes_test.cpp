// SPDX-License-Identifier: Apache-2.0
// Goal: a change that is asked for again is known as long as it may be, and memory is bounded.
// Method: changes of askers by number, and what is known of them afterwards.
#include "actors/replication/made_changes.hpp"
#include "messages/limits.hpp"
#include "tests/doctest.hpp"

namespace made_changes_test {

using namespace troupe;

namespace {

made_change made(change_id id, uint64_t version = 0) {
  return {id, {}, applied_update{.version = version}};
}

} // namespace

TEST_SUITE("actors/replication/made_changes") {
  TEST_CASE("a change is known until its asker has the answer") {
    made_changes changes;
    CHECK(changes.find({1, 1, 1}) == nullptr);
    changes.add(made({1, 1, 1}, 5));
    REQUIRE(changes.find({1, 1, 1}) != nullptr);
    CHECK(changes.find({1, 1, 1})->applied->version == 5);
    CHECK(changes.find({2, 1, 1}) == nullptr); // another's
    changes.add(made({1, 2, 1}));
    CHECK(changes.find({1, 1, 1}) != nullptr);
    changes.add(made({1, 3, 2}));
    CHECK(changes.find({1, 1, 1}) == nullptr);
    CHECK(changes.is_over({1, 1, 1}));
    CHECK(!changes.is_over({1, 2, 1}));
    CHECK(!changes.is_over({1, 4, 4}));
    CHECK(!changes.is_over({2, 1, 1}));
  }

  TEST_CASE("an earlier change may come after a later one") {
    made_changes changes;
    changes.add(made({1, 2, 1}));
    CHECK(changes.find({1, 1, 1}) == nullptr);
    CHECK(!changes.is_over({1, 1, 1}));
    changes.add(made({1, 1, 1}));
    CHECK(changes.find({1, 1, 1}) != nullptr);
    CHECK(changes.find({1, 2, 1}) != nullptr);
  }

  TEST_CASE("another who is told all knows as much") {
    made_changes changes;
    changes.add(made({1, 7, 6}));
    changes.add(made({2, 3, 3}));
    changes.add(made({1, 6, 6}));
    made_changes other;
    other.add(made({9, 1, 1}));
    other.restore(changes.all());
    CHECK(other.find({1, 7, 6}) != nullptr);
    CHECK(other.find({1, 6, 6}) != nullptr);
    CHECK(other.find({2, 3, 3}) != nullptr);
    CHECK(other.is_over({1, 5, 5}));
    CHECK(other.find({9, 1, 1}) == nullptr);
    CHECK(other.all().size() == 3);
    CHECK(other.all().front().id.asker == 2);
  }

  TEST_CASE("an asker that never has an answer is refused what was forgotten") {
    made_changes changes;
    for (uint64_t number = 1; number <= limits::changes_of_asker_max + 1; ++number)
      changes.add(made({1, number, 1}));
    CHECK(changes.all().size() == limits::changes_of_asker_max);
    CHECK(changes.is_over({1, 1, 1}));
    CHECK(changes.find({1, 2, 1}) != nullptr);
  }

  TEST_CASE("who has not asked for longest is forgotten") {
    made_changes changes;
    for (uint64_t asker = 1; asker <= limits::askers_max; ++asker)
      changes.add(made({asker, 1, 1}));
    changes.add(made({1, 2, 2}));
    changes.add(made({limits::askers_max + 1, 1, 1}));
    CHECK(changes.find({2, 1, 1}) == nullptr);
    CHECK(changes.find({1, 2, 2}) != nullptr);
    CHECK(changes.all().size() == limits::askers_max);
  }

  TEST_CASE("nonsense forgets nothing of others") {
    made_changes changes;
    changes.add(made({1, 1, 1}));
    changes.add(made({2, 3, 1'000}));
    CHECK(changes.find({2, 3, 1'000}) != nullptr);
    CHECK(changes.find({1, 1, 1}) != nullptr);
    CHECK(!changes.is_over({2, 4, 4}));
  }
}

} // namespace made_changes_test
