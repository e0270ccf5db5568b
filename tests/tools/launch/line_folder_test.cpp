// SPDX-License-Identifier: Apache-2.0
// Goal: a line of many tasks is one line, soon, and the lines of a task keep their order. Method:
// lines at made-up times.
#include "tests/doctest.hpp"
#include "tools/launch/line_folder.hpp"

#include <random>

namespace line_folder_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<folded_line>;

line_folder::time_point at(std::chrono::milliseconds time) {
  return line_folder::time_point{time};
}

} // namespace

TEST_SUITE("tools/launch/line_folder") {
  TEST_CASE("a line of several tasks is one when its time is over") {
    line_folder folder{4};
    folder.add(2, 1, "same\n", at(0ms));
    folder.add(0, 1, "same\n", at(499ms));
    CHECK(folder.next() == at(500ms));
    CHECK(folder.take(at(499ms)).empty());
    CHECK(folder.take(at(500ms)) == lines{{1, "same\n", {0, 2}}});
    CHECK_FALSE(folder.next());
  }

  TEST_CASE("a line that all tasks have said need not wait, but for older ones") {
    line_folder folder{2};
    folder.add(0, 1, "same\n", at(0ms));
    folder.add(1, 1, "same\n", at(1ms));
    CHECK(folder.take(at(1ms)) == lines{{1, "same\n", {0, 1}}});
    folder.add(0, 1, "older\n", at(2ms));
    folder.add(0, 1, "same\n", at(3ms));
    folder.add(1, 1, "same\n", at(3ms));
    CHECK(folder.take(at(3ms)).empty());
    CHECK(folder.take(at(502ms)) == lines{{1, "older\n", {0}}, {1, "same\n", {0, 1}}});
  }

  TEST_CASE("one task alone waits for none") {
    line_folder folder{1};
    folder.add(0, 1, "a\n", at(0ms));
    folder.add(0, 1, "a\n", at(0ms));
    CHECK(folder.take(at(0ms)) == lines{{1, "a\n", {0}}, {1, "a\n", {0}}});
  }

  TEST_CASE("a line that a task writes twice is printed twice") {
    line_folder folder{3};
    for (size_t task : {0, 1, 0, 1, 0})
      folder.add(task, 1, "again\n", at(0ms));
    CHECK(folder.take_all()
          == lines{{1, "again\n", {0, 1}}, {1, "again\n", {0, 1}}, {1, "again\n", {0}}});
  }

  TEST_CASE("earlier lines of a task come before the line that it joins") {
    line_folder folder{3};
    folder.add(0, 1, "b\n", at(0ms));
    folder.add(1, 1, "a\n", at(100ms));
    folder.add(1, 1, "b\n", at(100ms));
    folder.add(2, 1, "b\n", at(100ms));
    folder.add(2, 1, "c\n", at(100ms));
    CHECK(folder.take(at(500ms)) == lines{{1, "a\n", {1}}, {1, "b\n", {0, 1, 2}}});
    CHECK(folder.take(at(600ms)) == lines{{1, "c\n", {2}}});
  }

  TEST_CASE("lines that stand before a common one are common, too, if they can be") {
    line_folder folder{3};
    folder.add(0, 1, "b\n", at(0ms));
    for (size_t task : {1, 2}) {
      folder.add(task, 1, "a\n", at(0ms));
      folder.add(task, 1, "b\n", at(0ms));
    }
    folder.add(0, 1, "a\n", at(0ms));
    CHECK(folder.take_all() == lines{{1, "a\n", {1, 2}}, {1, "b\n", {0, 1, 2}}, {1, "a\n", {0}}});
  }

  TEST_CASE("no line is lost, and the lines of a task keep their order") {
    std::minstd_rand draw{7};
    for (int round = 0; round < 200; ++round) {
      line_folder folder{4};
      std::vector<std::string> said(4);
      std::vector<std::string> told(4);
      auto hear = [&](const lines& taken) {
        for (const auto& each : taken)
          for (auto task : each.tasks)
            told[task] += each.line;
      };
      for (int i = 0; i < 60; ++i) {
        std::string line(1, static_cast<char>('a' + draw() % 4));
        auto task = draw() % 4;
        said[task] += line;
        folder.add(task, 1, line, at(std::chrono::milliseconds{i * 20}));
        hear(folder.take(at(std::chrono::milliseconds{i * 20})));
      }
      hear(folder.take_all());
      CHECK(told == said);
    }
  }

  TEST_CASE("a line that was taken is joined by none") {
    line_folder folder{2};
    folder.add(0, 1, "same\n", at(0ms));
    CHECK(folder.take(at(500ms)).size() == 1);
    folder.add(1, 1, "same\n", at(500ms));
    CHECK(folder.take_all() == lines{{1, "same\n", {1}}});
  }

  TEST_CASE("outputs are kept apart") {
    line_folder folder{3};
    folder.add(0, 1, "same\n", at(0ms));
    folder.add(1, 2, "same\n", at(0ms));
    CHECK(folder.take_all() == lines{{1, "same\n", {0}}, {2, "same\n", {1}}});
  }

  TEST_CASE("a flood waits no longer than its bytes may") {
    line_folder folder{2};
    std::string line(line_folder::waiting_bytes_max / 4, 'x');
    size_t taken = 0;
    for (char letter = 'a'; letter < 'k'; ++letter) {
      folder.add(0, 1, line + letter, at(0ms));
      for (const auto& each : folder.take(at(0ms)))
        CHECK(each.line.back() == static_cast<char>('a' + taken++));
    }
    CHECK(taken == 7);
    CHECK(folder.take_all().size() == 3);
  }
}

} // namespace line_folder_test
