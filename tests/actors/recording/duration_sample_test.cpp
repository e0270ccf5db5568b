// SPDX-License-Identifier: Apache-2.0
// Goal: percentiles are those of the textbook, and memory stays bounded. Method: ramps with known
// answers.
#include "actors/recording/duration_sample.hpp"
#include "tests/doctest.hpp"

namespace duration_sample_test {

TEST_SUITE("actors/recording/duration_sample") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("says nothing of nothing") {
    duration_sample sample;
    CHECK(sample.percentile(0.5) == 0ns);
    CHECK(sample.longest() == 0ns);
    CHECK(sample.count() == 0);
  }

  TEST_CASE("finds the nearest rank") {
    duration_sample sample;
    for (int i = 100; i > 0; --i)
      sample.add(std::chrono::milliseconds{i});
    CHECK(sample.percentile(0) == 1ms);
    CHECK(sample.percentile(0.5) == 50ms);
    CHECK(sample.percentile(0.9) == 90ms);
    CHECK(sample.percentile(0.99) == 99ms);
    CHECK(sample.percentile(1) == 100ms);
    CHECK(sample.longest() == 100ms);
  }

  TEST_CASE("answers with the only one") {
    duration_sample sample;
    sample.add(7ms);
    CHECK(sample.percentile(0) == 7ms);
    CHECK(sample.percentile(0.99) == 7ms);
  }

  TEST_CASE("thins out a long stream evenly, and never forgets the longest") {
    duration_sample sample;
    const uint64_t added = 3 * duration_sample::kept_max + 1;
    for (uint64_t i = 1; i <= added; ++i)
      sample.add(std::chrono::nanoseconds{i});
    CHECK(sample.count() == added);
    CHECK(sample.longest() == std::chrono::nanoseconds{added});
    const auto median = static_cast<double>(sample.percentile(0.5).count());
    CHECK(median == doctest::Approx(added / 2.0).epsilon(1e-5));
  }
}

} // namespace duration_sample_test
