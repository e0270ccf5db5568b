// SPDX-License-Identifier: Apache-2.0
// Goal: no two spans of a track overlap in part. Method: each way to overlap, then a thousand drawn
// spans checked pair by pair.
#include "actors/recording/span_nesting.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace span_nesting_test {

namespace {

using namespace troupe;

bool overlap_in_part(time_span a, time_span b) {
  if (b.start < a.start) std::swap(a, b);
  return a.start < b.start && b.start < a.end && a.end < b.end;
}

time_span span(int64_t start, int64_t end) {
  return {job_time{start}, job_time{end}};
}

} // namespace

TEST_SUITE("actors/recording/span_nesting") {
  TEST_CASE("leaves alone what lies beside, inside or around") {
    span_nesting track;
    CHECK(track.fit(span(10, 20)) == span(10, 20));
    CHECK(track.fit(span(20, 30)) == span(20, 30));
    CHECK(track.fit(span(12, 18)) == span(12, 18));
    CHECK(track.fit(span(10, 30)) == span(10, 30));
    CHECK(track.fit(span(0, 40)) == span(0, 40));
    CHECK(track.fit(span(15, 15)) == span(15, 15));
  }

  TEST_CASE("cuts the start of a span that began before another ended") {
    span_nesting track;
    CHECK(track.fit(span(10, 20)) == span(10, 20));
    CHECK(track.fit(span(19, 30)) == span(20, 30));
  }

  TEST_CASE("cuts the end of a span that runs into another") {
    span_nesting track;
    CHECK(track.fit(span(10, 20)) == span(10, 20));
    CHECK(track.fit(span(5, 15)) == span(5, 10));
  }

  TEST_CASE("takes a span that ends before it starts as a moment") {
    span_nesting track;
    CHECK(track.fit(span(10, 5)) == span(10, 10));
  }

  TEST_CASE("nests whatever comes") {
    std::mt19937_64 random{7};
    for (int round = 0; round < 50; ++round) {
      span_nesting track;
      std::vector<time_span> fitted;
      for (size_t i = 0; i < span_nesting::remembered_max; ++i) {
        const auto start = static_cast<int64_t>(random() % 200);
        fitted.push_back(track.fit(span(start, start + static_cast<int64_t>(random() % 100))));
      }
      for (const auto& a : fitted)
        CHECK(std::none_of(fitted.begin(), fitted.end(),
                           [&](const auto& b) { return overlap_in_part(a, b); }));
    }
  }
}

} // namespace span_nesting_test
