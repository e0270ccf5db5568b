// SPDX-License-Identifier: Apache-2.0
// Goal: a text is a number only as a whole, and is cut and spelled as said. Method: texts by hand.
#include "messages/text.hpp"
#include "tests/doctest.hpp"

#include <cstdint>

namespace text_test {

using namespace troupe;

TEST_SUITE("messages/text") {
  TEST_CASE("a number is read if it is all of the text, and fits") {
    CHECK(number_of<uint32_t>("4294967295") == 4294967295U);
    CHECK(number_of<int>("-7") == -7);
    CHECK(number_of<double>("2.5e3") == 2500);
    for (auto text : {"", " 7", "7 ", "+7", "-7", "7x", "0x7", "4294967296"}) {
      CAPTURE(text);
      CHECK(!number_of<uint32_t>(text));
    }
  }

  TEST_CASE("blanks are cut off at both ends, and nowhere else") {
    CHECK(trimmed(" \ta b\r\n") == "a b");
    CHECK(trimmed("a\r", " \t") == "a\r");
    CHECK(trimmed(" \n ") == "");
    CHECK(trimmed("") == "");
  }

  TEST_CASE("letters become small, and all else stays") {
    CHECK(lower_case("GPU:0/Ab-c") == "gpu:0/ab-c");
    CHECK(lower_case("") == "");
  }
}

} // namespace text_test
