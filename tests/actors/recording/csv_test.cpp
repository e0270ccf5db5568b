// SPDX-License-Identifier: Apache-2.0
// Goal: every program splits our lines as we meant them. Method: the cases of RFC 4180, and edge
// numbers.
#include "actors/recording/csv.hpp"
#include "tests/doctest.hpp"

#include <limits>

namespace csv_test {

TEST_SUITE("actors/recording/csv") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("leaves a plain text alone") {
    CHECK(csv::field("accepted") == "accepted");
    CHECK(csv::field("").empty());
    CHECK(csv::field("two words") == "two words");
  }

  TEST_CASE("quotes what would break the line") {
    CHECK(csv::field("a,b") == "\"a,b\"");
    CHECK(csv::field("say \"no\"") == "\"say \"\"no\"\"\"");
    CHECK(csv::field("one\ntwo") == "\"one\ntwo\"");
    CHECK(csv::field("one\rtwo") == "\"one\rtwo\"");
    CHECK(csv::field(" padded") == "\" padded\"");
    CHECK(csv::field("padded ") == "\"padded \"");
  }

  TEST_CASE("leaves a number without a value empty") {
    CHECK(csv::field(2.5) == "2.5");
    CHECK(csv::field(std::numeric_limits<double>::quiet_NaN()).empty());
    CHECK(csv::field(std::numeric_limits<double>::infinity()).empty());
  }

  TEST_CASE("writes seconds exactly") {
    CHECK(csv::seconds(0ns) == "0");
    CHECK(csv::seconds(1500ms) == "1.5");
    CHECK(csv::seconds(1ns) == "0.000000001");
    CHECK(csv::seconds(-1500ms) == "-1.5");
    CHECK(csv::seconds(-1ns) == "-0.000000001");
    CHECK(csv::seconds(job_time::max()) == "9223372036.854775807");
    CHECK(csv::seconds(100s) == "100");
  }

  TEST_CASE("separates fields by commas, empty ones too") {
    CHECK(csv::line({"1", "", "3", ""}) == "1,,3,\n");
    CHECK(csv::line({""}) == "\n");
  }
}

} // namespace csv_test
