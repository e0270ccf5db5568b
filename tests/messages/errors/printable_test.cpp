// SPDX-License-Identifier: Apache-2.0
// Goal: text from elsewhere tells a terminal nothing. Method: control characters, and bytes that
// are not UTF-8.
#include "messages/errors/printable.hpp"
#include "tests/doctest.hpp"

#include <limits>

namespace printable_test {

using namespace troupe;

TEST_SUITE("messages/errors/printable") {
  TEST_CASE("text of others tells a terminal nothing") {
    CHECK(printable("a\tb\r \x1b[2J\x07\x7f", "\t\r") == "a\tb\r ?[2J??");
    CHECK(printable("a\tb\n") == "a?b?");
    CHECK(printable("gr\xc3\xbc\xc3\x9f \xc2\x9b"
                    "2J \xc2\xb5")
          == "gr\xc3\xbc\xc3\x9f ??2J \xc2\xb5");
  }

  TEST_CASE("bytes from elsewhere become one line of UTF-8") {
    CHECK(printable_line("one\ntwo\r\n\tthree \x1b[31m") == "one two   three ?[31m");
    CHECK(printable_line("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xad")
          == "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8e\xad");
    CHECK(printable_line("a \xff b \xc3") == "a ? b ?");
    CHECK(printable_line("\xc2\x9b"
                         "2J")
          == "??2J");
    CHECK(printable_line({"a\0b", 3}) == "a?b");
    CHECK(printable_line("").empty());
  }

  TEST_CASE("a number is printed so that it is read as the same one") {
    CHECK(printable(0.1) == "0.1");
    CHECK(printable(1) == "1");
    CHECK(printable(1.0000001) == "1.0000001");
    CHECK(printable(-1e-9) == "-1e-09");
    CHECK(printable(-std::numeric_limits<double>::max()) == "-1.7976931348623157e+308");
    CHECK(printable(std::numeric_limits<double>::infinity()) == "inf");
  }

  TEST_CASE("a byte sequence is UTF-8 in its shortest form only") {
    for (const auto* text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                             "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
      CHECK(is_utf8(text));
    for (const auto* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80",
                             "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                             "\xf0\x9f\x8e"
                             "a"})
      CHECK_FALSE(is_utf8(text));
  }
}

} // namespace printable_test
