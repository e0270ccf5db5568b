// SPDX-License-Identifier: Apache-2.0
// Goal: each value is counted in the bucket that holds it. Method: a few values of all sizes.
#include "actors/recording/value_histogram.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace value_histogram_test {

TEST_SUITE("actors/recording/value_histogram") {
  using namespace troupe;

  constexpr auto largest = std::numeric_limits<double>::max();

  TEST_CASE("adds up what was given") {
    const double values[] = {3, -1, 0.5};
    const auto histogram = histogram_of(values);
    CHECK(histogram.min == -1);
    CHECK(histogram.max == 3);
    CHECK(histogram.count == 3);
    CHECK(histogram.sum == 2.5);
    CHECK(histogram.sum_of_squares == 10.25);
  }

  TEST_CASE("counts each value between two limits that are near it") {
    for (double value : {-largest, -1e25, -3.0, -1e-12, -1e-15, 0.0, 1e-15, 1e-12, 0.1, 7.0, 1e19,
                         1e25, largest}) {
      CAPTURE(value);
      const auto histogram = histogram_of({&value, 1});
      REQUIRE(histogram.counts.size() == histogram.upper_limits.size());
      CHECK(std::accumulate(histogram.counts.begin(), histogram.counts.end(), 0.0) == 1);
      CHECK(histogram.upper_limits.back() == largest);
      size_t place = 0;
      while (histogram.counts[place] == 0)
        ++place;
      const auto limit = histogram.upper_limits[place];
      const auto limit_before = place == 0 ? -largest : histogram.upper_limits[place - 1];
      if (value < largest) CHECK(value < limit);
      CHECK(value >= limit_before);
      if (std::abs(value) > 1e-12 && std::abs(value) < 1e20)
        CHECK(limit - limit_before < 0.11 * std::abs(value));
    }
  }

  TEST_CASE("makes one bucket of a run of empty ones") {
    const double values[] = {1, 1, 5};
    const auto histogram = histogram_of(values);
    CHECK(histogram.counts == std::vector<double>{0, 2, 0, 1, 0});
    for (size_t i = 1; i < histogram.upper_limits.size(); ++i)
      CHECK(histogram.upper_limits[i - 1] < histogram.upper_limits[i]);
  }

  TEST_CASE("leaves out what is no finite number") {
    const double values[] = {std::nan(""), std::numeric_limits<double>::infinity()};
    const auto histogram = histogram_of(values);
    CHECK(histogram.count == 0);
    CHECK(histogram.counts == std::vector<double>{0});
    CHECK(histogram.upper_limits == std::vector<double>{largest});
  }
}

} // namespace value_histogram_test
