// SPDX-License-Identifier: Apache-2.0
// Goal: what a run has said can be read again. Method: lines with every letter that tables quote.
#include "actors/recording/notice_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

namespace notice_file_test {

TEST_SUITE("actors/recording/notice_file") {
  using namespace troupe;

  TEST_CASE("keeps each line at once, and reads it back") {
    test::scratch_folder folder;
    auto file = notice_file::create(folder / "notices.csv");
    REQUIRE(file);
    const std::string texts[] = {"replica 3 is lost", "a, b", "say \"no\", twice", "", " blank "};
    std::string expected{notice_file::header};
    for (const auto& text : texts) {
      REQUIRE(file->append(7, text));
      auto content = test::content(folder / "notices.csv");
      auto line = content.substr(expected.size());
      auto read = read_notice_line(line.substr(0, line.size() - 1));
      REQUIRE(read);
      CHECK(read->step == 7);
      CHECK(read->text == text);
      expected = content;
    }
    REQUIRE(file->append(8, "two\nlines\x1b[2J"));
    CHECK(test::content(folder / "notices.csv") == expected + "8,two lines [2J\n");
  }

  TEST_CASE("reads nothing out of other lines") {
    for (const char* line : {"", "7", "x,text", ",text", "7,\"open", "7,\""})
      CHECK_FALSE(read_notice_line(line));
  }
}

} // namespace notice_file_test
