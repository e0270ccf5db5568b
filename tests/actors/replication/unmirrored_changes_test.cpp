// SPDX-License-Identifier: Apache-2.0
// Goal: the mirror is told of all changes in order, and callers are answered when it has made them.
// Method: what is told and settled, written down.
#include "actors/replication/unmirrored_changes.hpp"
#include "tests/doctest.hpp"

#include <string>
#include <vector>

namespace unmirrored_changes_test {

using namespace troupe;

namespace {

/// Writes down what is told and settled, by name.
struct diary {
  std::vector<std::string> lines;

  unmirrored_change change(const std::string& name, std::optional<request_id> id = {}) {
    return {[this, name] { lines.push_back("tell " + name); },
            [this, name](const std::optional<error>& refused) {
              lines.push_back((refused ? "refuse " : "settle ") + name);
            },
            id};
  }
};

} // namespace

TEST_SUITE("actors/replication/unmirrored_changes") {
  TEST_CASE("the mirror is told of one change after the other") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a"));
    changes.add(diary.change("b"));
    CHECK(diary.lines == std::vector<std::string>{"tell a"});
    changes.settle_first();
    changes.settle_first();
    CHECK(diary.lines == std::vector<std::string>{"tell a", "settle a", "tell b", "settle b"});
  }

  TEST_CASE("without the mirror all changes are settled, or refused") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a"));
    changes.add(diary.change("b"));
    changes.settle_all();
    changes.add(diary.change("c"));
    changes.settle_all(error{errc::unavailable, "lost"});
    CHECK(diary.lines
          == std::vector<std::string>{"tell a", "settle a", "settle b", "tell c", "refuse c"});
  }

  TEST_CASE("a caller waits for the last change that may be asked for again") {
    diary diary;
    unmirrored_changes changes;
    CHECK(changes.last_numbered() == nullptr);
    changes.add(diary.change("a", request_id{1, 1, 1}));
    changes.add(diary.change("b", request_id{2, 1, 1}));
    changes.add(diary.change("c"));
    auto* last = changes.last_numbered();
    REQUIRE(last != nullptr);
    last->settle(std::nullopt);
    CHECK(diary.lines.back() == "settle b");
    changes.forget();
    CHECK(changes.last_numbered() == nullptr);
  }

  TEST_CASE("a change is found by its number as long as the mirror has not made it") {
    diary diary;
    unmirrored_changes changes;
    changes.add(diary.change("a", request_id{1, 1, 1}));
    changes.add(diary.change("b"));
    changes.add(diary.change("c", request_id{2, 1, 1}));
    auto* found = changes.find({2, 1, 1});
    REQUIRE(found != nullptr);
    found->settle(std::nullopt);
    CHECK(diary.lines.back() == "settle c");
    CHECK(changes.find({2, 2, 2}) == nullptr);
    CHECK(changes.find({1, 1, 1}) != nullptr);
    changes.settle_first();
    CHECK(changes.find({1, 1, 1}) == nullptr);
  }
}

} // namespace unmirrored_changes_test
