// SPDX-License-Identifier: Apache-2.0
// Goal: lines come out as they were written, however a pipe cuts them. Method: all cuts of a text.
#include "tests/doctest.hpp"
#include "tools/launch/line_splitter.hpp"

namespace line_splitter_test {

using namespace troupe;

TEST_SUITE("tools/launch/line_splitter") {
  TEST_CASE("a line comes out when its end has come in") {
    line_splitter splitter;
    CHECK(splitter.add("").empty());
    CHECK(splitter.add("a").empty());
    CHECK(splitter.add("b\n\nc") == std::vector<std::string>{"ab\n", "\n"});
    CHECK(splitter.rest() == "c");
    CHECK(splitter.rest().empty());
  }

  TEST_CASE("cuts do not matter") {
    const std::string text = "one\ntwo\r\n\nlast";
    const std::vector<std::string> lines{"one\n", "two\r\n", "\n"};
    for (size_t first = 0; first <= text.size(); ++first) {
      for (size_t second = first; second <= text.size(); ++second) {
        line_splitter splitter;
        std::vector<std::string> got;
        for (const auto& part :
             {text.substr(0, first), text.substr(first, second - first), text.substr(second)})
          for (auto& line : splitter.add(part))
            got.push_back(std::move(line));
        CHECK(got == lines);
        CHECK(splitter.rest() == "last");
      }
    }
  }

  TEST_CASE("a line that does not end comes in pieces") {
    constexpr auto most = line_splitter::line_bytes_max;
    line_splitter splitter;
    CHECK(splitter.add(std::string(most - 1, 'x')).empty());
    auto pieces = splitter.add(std::string(most + 2, 'x') + "\n");
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[0].size() == most);
    CHECK(pieces[1].size() == most);
    CHECK(pieces[2] == "x\n");
    CHECK(splitter.rest().empty());
  }
}

} // namespace line_splitter_test
