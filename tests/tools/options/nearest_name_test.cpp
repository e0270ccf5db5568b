// SPDX-License-Identifier: Apache-2.0
// Goal: a slip of the pen leads to the name that was meant. Method: distances counted by hand.
#include "tests/doctest.hpp"
#include "tools/options/nearest_name.hpp"

#include <array>

namespace nearest_name_test {

TEST_SUITE("tools/options/nearest_name") {
  using namespace troupe;

  TEST_CASE("counts inserted, deleted, replaced and swapped letters") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("batch", "batch") == 0);
    CHECK(edit_distance("", "seed") == 4);
    CHECK(edit_distance("seed", "") == 4);
    CHECK(edit_distance("replcas", "replicas") == 1);
    CHECK(edit_distance("batchh", "batch") == 1);
    CHECK(edit_distance("learning_rate", "learning-rate") == 1);
    CHECK(edit_distance("setps", "steps") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
  }

  TEST_CASE("finds the nearest name, the first of several") {
    constexpr std::array<std::string_view, 3> names{"steps", "seed", "slow"};
    CHECK(nearest_name("setps", names) == "steps");
    CHECK(nearest_name("seeds", names) == "seed");
    CHECK(nearest_name("s", names) == "seed");
    CHECK(nearest_name("anything", {}).empty());
  }
}

} // namespace nearest_name_test
