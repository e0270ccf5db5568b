// SPDX-License-Identifier: Apache-2.0
// Goal: numbers never show a misleading digit at the edges between units. Method: values beside
// each edge.
#include "actors/recording/readable.hpp"
#include "tests/doctest.hpp"

#include <limits>

namespace readable_test {

TEST_SUITE("actors/recording/readable") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("groups digits by three") {
    CHECK(readable::count(0) == "0");
    CHECK(readable::count(999) == "999");
    CHECK(readable::count(1000) == "1,000");
    CHECK(readable::count(1234567) == "1,234,567");
    CHECK(readable::count(std::numeric_limits<uint64_t>::max()) == "18,446,744,073,709,551,615");
  }

  TEST_CASE("chooses the unit that fits a duration") {
    CHECK(readable::duration(0ns) == "0 ns");
    CHECK(readable::duration(999ns) == "999 ns");
    CHECK(readable::duration(12'340ns) == "12.3 us");
    CHECK(readable::duration(999'499ns) == "999 us");
    CHECK(readable::duration(999'600ns) == "1.00 ms");
    CHECK(readable::duration(9'999us) == "10.0 ms");
    CHECK(readable::duration(1s) == "1.00 s");
    CHECK(readable::duration(99'949ms) == "99.9 s");
    CHECK(readable::duration(99'960ms) == "1 min 40 s");
    CHECK(readable::duration(3599s) == "59 min 59 s");
    CHECK(readable::duration(2h + 7min + 12s) == "2 h 07 min");
    CHECK(readable::duration(12.5) == "12.5 s");
    CHECK(readable::duration(-3.0) == "0 ns");
    CHECK(readable::duration(1e300) == readable::duration(1e9));
  }

  TEST_CASE("shows a duration as a clock does") {
    CHECK(readable::clock(0s) == "0:00");
    CHECK(readable::clock(6600ms) == "0:07");
    CHECK(readable::clock(125s) == "2:05");
    CHECK(readable::clock(59min + 59600ms) == "1:00:00");
    CHECK(readable::clock(1h + 2min + 7s) == "1:02:07");
  }

  TEST_CASE("keeps three digits of a quantity") {
    CHECK(readable::quantity(0) == "0.00");
    CHECK(readable::quantity(0.417) == "0.42");
    CHECK(readable::quantity(17.34) == "17.3");
    CHECK(readable::quantity(99.96) == "100");
    CHECK(readable::quantity(12934.7) == "12,935");
    CHECK(readable::quantity(-12934.7) == "-12,935");
    CHECK(readable::quantity(1.5e300) == "1.5e+300");
    CHECK(readable::quantity(std::numeric_limits<double>::quiet_NaN()) == "-");
  }
}

} // namespace readable_test
