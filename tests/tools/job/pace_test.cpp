// SPDX-License-Identifier: Apache-2.0
// Goal: replicas take as long as the options say. Method: times asked for, by replica and draw.
#include "simulation/distributions/distribution.hpp"
#include "tests/doctest.hpp"
#include "tools/job/pace.hpp"

namespace pace_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;

} // namespace

TEST_SUITE("tools/job/pace") {
  TEST_CASE("adds to what a slow replica takes in real time") {
    job_options options;
    options.slow = {{1, 2.5}};
    const auto pace = pace_of(options);
    CHECK(pace(0, 0, 10ms) == 0ms);
    CHECK(pace(1, 7, 10ms) == 15ms);
  }

  TEST_CASE("is all that computing takes in virtual time") {
    job_options options;
    options.world = world_kind::virtual_time;
    options.slow = {{1, 3}};
    const auto pace = pace_of(options);
    CHECK(pace(0, 0, 10ms) == 100ms);
    CHECK(pace(1, 0, 10ms) == 300ms);
  }

  TEST_CASE("draws virtual times by seed, replica and iteration, as a simulation does") {
    job_options options;
    options.world = world_kind::virtual_time;
    options.compute = "lognormal(1, 0.3) slow={3}*3";
    options.slow = {{2, 2}};
    options.seed = 7;
    const auto pace = pace_of(options);
    const auto drawn = distribution::parse(options.compute)->times(7);
    for (uint64_t iteration : {0, 1, 40}) {
      CHECK(pace(0, iteration, 0ms) == drawn(0, iteration));
      CHECK(pace(2, iteration, 0ms) == 2 * drawn(2, iteration));
      CHECK(pace(3, iteration, 0ms) == drawn(3, iteration));
    }
    CHECK(pace(0, 1, 0ms) != pace(0, 2, 0ms));
  }
}

} // namespace pace_test
