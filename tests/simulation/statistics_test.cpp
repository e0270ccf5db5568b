// SPDX-License-Identifier: Apache-2.0
// Goal: errors and intervals are as wide as they should be. Method: small sums by hand, published
// quantiles, and drawn series with known true errors.
#include "kernels/tensor/random.hpp"
#include "simulation/statistics.hpp"
#include "tests/doctest.hpp"

#include <cmath>

namespace statistics_test {

using namespace troupe;

namespace {

using values = std::vector<double>;

} // namespace

TEST_SUITE("simulation/statistics") {
  TEST_CASE("a mean of independent values and its error are what they are by hand") {
    auto seen = estimate_of(values{1, 2, 3, 6});
    CHECK(seen.mean == 3);
    CHECK(seen.standard_error == doctest::Approx(std::sqrt(14.0 / 3 / 4)));
    CHECK(seen.count == 4);
  }

  TEST_CASE("too few values have no error, and none have no mean") {
    CHECK(estimate_of(values{5}).mean == 5);
    CHECK(std::isnan(estimate_of(values{5}).standard_error));
    CHECK(std::isnan(estimate_of(values{}).mean));
    CHECK(std::isnan(estimate_of_series(values{}).mean));
    CHECK(std::isnan(sorted_values{{}}.quantile(0.5)));
    CHECK(std::isnan(paired_difference({{1}}, {{2}}).low));
  }

  TEST_CASE("a quantile is one of the values, by nearest rank") {
    sorted_values four{{4, 1, 3, 2}};
    CHECK(four.quantile(0) == 1);
    CHECK(four.quantile(0.25) == 1);
    CHECK(four.quantile(0.5) == 2);
    CHECK(four.quantile(0.51) == 3);
    CHECK(four.quantile(0.9) == 4);
    CHECK(four.quantile(1) == 4);
  }

  TEST_CASE("batches are of equal length, and leave nothing out") {
    CHECK(batch_means(values{1, 2, 3, 4}, 2) == values{1.5, 3.5});
    CHECK(batch_means(values{5, 1, 2, 3, 4}, 2) == values{2.8, 3.2});
    CHECK(batch_means(values{1, 2}, 2) == values{1, 2});
    CHECK(batch_means(values{1, 2}, 5) == values{1, 2});
    CHECK(batch_means(values{}).empty());
  }

  TEST_CASE("batch means see the error that correlated neighbours hide") {
    // x_t = 0.9 x_(t-1) + e: the mean's variance is 1 / (1 - 0.9)^2 = 100 times that of the noise.
    random_stream noise{random_key{3, "series"}};
    values series;
    double x = 0;
    for (int i = 0; i < 40'000; ++i)
      series.push_back(x = 0.9 * x + noise.normal());
    auto expected = 10 / std::sqrt(40'000.0);
    CHECK(estimate_of_series(series).standard_error == doctest::Approx(expected).epsilon(0.5));
    CHECK(estimate_of(series).standard_error < expected / 3);
    CHECK(std::abs(estimate_of_series(series).mean) < 4 * expected);
  }

  TEST_CASE("the error of batches that hardly depend on each other is that of independent ones") {
    random_stream noise{random_key{4, "batches"}};
    values batches;
    for (size_t i = 0; i < short_batch_count; ++i)
      batches.push_back(noise.normal());
    auto error = error_of({batches});
    CHECK(error.standard_error == estimate_of(batch_means(batches)).standard_error);
    CHECK(error.freedom == batch_count - 1);
    CHECK_FALSE(error.is_dependent);
    CHECK(error_of({}).freedom == 0);
    CHECK(std::isnan(error_of({{1}, {}}).half_width()));
  }

  TEST_CASE("batches that rise and fall slowly make one run's interval wider") {
    values batches;
    for (size_t i = 0; i < short_batch_count; ++i)
      batches.push_back(i < 15 ? 1 : 2);
    auto error = error_of({batches});
    CHECK(error.is_dependent);
    CHECK(error.freedom == 1);
    CHECK(error.half_width() > 10 * 2.093 * estimate_of(batch_means(batches)).standard_error);
  }

  TEST_CASE("batches that differ by rounding alone do not depend on each other") {
    values batches;
    for (size_t i = 0; i < short_batch_count; ++i)
      batches.push_back(i < 15 ? 1.1 : std::nextafter(1.1, 2));
    CHECK_FALSE(error_of({batches}).is_dependent);
  }

  TEST_CASE("only the means of several runs that differ for good count") {
    auto error = error_of({values(40, 1), values(40, 3), values(40, 2), {}});
    CHECK(error.is_dependent);
    CHECK(error.standard_error == doctest::Approx(1 / std::sqrt(3)));
    CHECK(error.freedom == 2);
    auto difference
      = paired_difference({values(40, 1), values(40, 3)}, {values(40, 1), values(40, 1)});
    CHECK(difference.mean == 1);
    CHECK(difference.standard_error == doctest::Approx(1));
    CHECK(difference.count == 40);
    CHECK(difference.freedom == 1);
    auto share = paired_share({values(40, 1), values(40, 3)}, {values(40, 1), values(40, 1)});
    CHECK(share.standard_error == doctest::Approx(1));
  }

  TEST_CASE("Student's quantiles are those of the tables") {
    CHECK(student_quantile(1) == doctest::Approx(12.706).epsilon(0.001));
    CHECK(student_quantile(3) == doctest::Approx(3.182).epsilon(0.001));
    CHECK(student_quantile(4) == doctest::Approx(2.776).epsilon(0.001));
    CHECK(student_quantile(9) == doctest::Approx(2.262).epsilon(0.001));
    CHECK(student_quantile(19) == doctest::Approx(2.093).epsilon(0.001));
    CHECK(student_quantile(1'000'000) == doctest::Approx(1.96).epsilon(0.001));
  }

  TEST_CASE("the common part of two rows falls out of their difference") {
    random_stream draw{random_key{5, "pairs"}};
    values baseline;
    values other;
    for (int i = 0; i < 20; ++i) {
      baseline.push_back(100 * draw.uniform());
      other.push_back(baseline.back() - 1 + 0.1 * draw.normal());
    }
    auto seen = paired_difference({other}, {baseline});
    CHECK(seen.count == 20);
    CHECK(seen.low < -1);
    CHECK(seen.high > -1);
    CHECK(seen.high - seen.low < 0.2);
    CHECK(estimate_of(baseline).standard_error > 3);
  }

  TEST_CASE(
    "a share of a baseline holds the truth in about 95 of 100 cases, however both scatter") {
    int holds = 0;
    int wide = 0; // neighbours are alike by chance
    for (uint64_t run = 0; run < 400; ++run) {
      random_stream draw{random_key{6, "shares", 0, run}};
      values baseline;
      values other;
      for (int i = 0; i < 20; ++i) {
        baseline.push_back(2 - std::log(draw.uniform()));
        other.push_back(0.3 * baseline.back() * (0.9 + 0.2 * draw.uniform()));
      }
      auto share = paired_share({other}, {baseline});
      wide += share.high - share.low < 0.05 ? 0 : 1;
      holds += share.low < -0.7 && -0.7 < share.high ? 1 : 0;
    }
    CHECK(holds / 400.0 == doctest::Approx(0.95).epsilon(0.04));
    CHECK(wide < 8);
    auto exact = paired_share({{1, 2, 3}}, {{2, 4, 6}});
    CHECK(exact.mean == -0.5);
    CHECK(exact.standard_error == 0);
  }

  TEST_CASE(
    "a quantile lies in its range in about 95 of 100 cases, whether neighbours depend or not") {
    for (double kept : {0.0, 0.7}) {
      int holds = 0;
      for (uint64_t run = 0; run < 400; ++run) {
        random_stream draw{random_key{8, "quantile", 0, run}};
        std::vector<values> series(1);
        double last = draw.uniform();
        for (int i = 0; i < 2000; ++i) { // each value is uniform, and kept for a while
          if (draw.uniform() >= kept) last = draw.uniform();
          series[0].push_back(last);
        }
        auto range = range_of_quantile(series, sorted_values{series[0]}, 0.9);
        holds += range.low < 0.9 && 0.9 < range.high ? 1 : 0;
      }
      CHECK(holds / 400.0 == doctest::Approx(0.95).epsilon(0.04));
    }
  }

  TEST_CASE("the longest run is no upper end of a quantile, if runs differ for good") {
    std::vector<values> runs;
    values all;
    for (int i = 0; i < 10; ++i) {
      runs.emplace_back(200, i);
      all.insert(all.end(), 200, i);
    }
    auto highest = range_of_quantile(runs, sorted_values{all}, 0.99);
    CHECK(highest.low == 9);
    CHECK(std::isnan(highest.high));
    auto median = range_of_quantile(runs, sorted_values{all}, 0.5);
    CHECK(median.low <= 1);
    CHECK(median.high >= 8);
  }

  TEST_CASE("a quantile beyond which there are too few values has no upper end") {
    std::vector<values> series(1);
    for (int i = 0; i < 40; ++i)
      series[0].push_back(17 * i % 40);
    auto range = range_of_quantile(series, sorted_values{series[0]}, 0.99);
    CHECK(range.low > 30);
    CHECK(std::isnan(range.high));
    auto same
      = range_of_quantile(std::vector<values>{values(40, 2)}, sorted_values{values(40, 2)}, 0.99);
    CHECK(same.low == 2);
    CHECK(same.high == 2);
    CHECK(std::isnan(range_of_quantile({}, sorted_values{{}}, 0.5).low));
  }

  TEST_CASE("the interval of 95 % holds the truth in about 95 of 100 cases") {
    int holds = 0;
    for (uint64_t run = 0; run < 2000; ++run) {
      random_stream draw{random_key{7, "interval", 0, run}};
      values noise;
      for (int i = 0; i < 5; ++i)
        noise.push_back(draw.normal());
      auto seen = paired_difference({noise}, {values(5, 0)});
      holds += seen.low < 0 && 0 < seen.high ? 1 : 0;
    }
    CHECK(holds / 2000.0 == doctest::Approx(0.95).epsilon(0.02)); // one error is 0.005
  }
}

} // namespace statistics_test
