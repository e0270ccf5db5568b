// SPDX-License-Identifier: Apache-2.0
// Goal: a try-out kills the tasks that it may, and the same ones with the same seed. Method: draws
// among the tasks of small jobs.
#include "tests/doctest.hpp"
#include "tools/launch/kill_choice.hpp"

#include <algorithm>

namespace kill_choice_test {

using namespace troupe;

namespace {

using numbers = std::vector<size_t>;

const std::vector<launch_task> plain{{"worker", 0, 1}, {"worker", 1, 2}, {"worker", 2, 3}};
const std::vector<launch_task> full{
  {"chief", 0, 1}, {"worker", 0, 2}, {"worker", 1, 3}, {"ps", 0, 4}, {"evaluator", 0, 5}};

numbers drawn(const std::vector<launch_task>& tasks, uint64_t seed, size_t count) {
  auto choice = kill_choice::among(tasks, "", seed);
  REQUIRE(choice);
  numbers all;
  while (all.size() < count)
    all.push_back(choice->draw([](size_t) { return true; }).value());
  return all;
}

std::string described(const std::vector<launch_task>& tasks, const std::string& words) {
  return kill_choice::among(tasks, words, 1).value().described(tasks);
}

} // namespace

TEST_SUITE("tools/launch/kill_choice") {
  TEST_CASE("spares the chief and tasks that are no workers, unless they are named") {
    CHECK(described(plain, "") == "one of worker:1-2, with --kill-seed 1");
    CHECK(described(full, "") == "one of worker:0-1, with --kill-seed 1");
    CHECK(described(plain, "worker") == "one of worker:0-2, with --kill-seed 1");
    CHECK(described(full, "ps,chief,worker:1,ps:0")
          == "one of chief:0 worker:1 ps:0, with --kill-seed 1");
    CHECK(described(full, "evaluator") == "one of evaluator:0, with --kill-seed 1");
  }

  TEST_CASE("draws all that it may, and the same with the same seed") {
    auto first = drawn(plain, 7, 40);
    CHECK(std::ranges::count(first, 1U) > 5);
    CHECK(std::ranges::count(first, 2U) > 5);
    CHECK(drawn(plain, 7, 40) == first);
    CHECK(drawn(plain, 8, 40) != first);
  }

  TEST_CASE("says which tasks it draws, and how to draw them again") {
    CHECK(kill_choice::among(plain, "", 9)->described(plain)
          == "one of worker:1-2, with --kill-seed 9");
  }

  TEST_CASE("draws none that does not run") {
    auto choice = kill_choice::among(plain, "", 1);
    REQUIRE(choice);
    for (int i = 0; i < 10; ++i)
      CHECK(choice->draw([](size_t task) { return task == 2; }) == 2);
    CHECK_FALSE(choice->draw([](size_t task) { return task == 0; }));
  }

  TEST_CASE("refuses a job without such a task, and words that name none") {
    std::vector<launch_task> alone{{"worker", 0, 1}, {"ps", 0, 2}};
    CHECK(kill_choice::among(alone, "", 1).error().code == errc::invalid_argument);
    CHECK(kill_choice::among(alone, "ps", 1));
    for (const char* words : {"chief", "worker:1", ",ps", "ps,,worker", "ps ps", "worker,pss"}) {
      CAPTURE(words);
      CHECK(kill_choice::among(alone, words, 1).error().code == errc::invalid_argument);
    }
  }
}

} // namespace kill_choice_test
