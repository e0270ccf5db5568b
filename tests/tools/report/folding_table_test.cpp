// SPDX-License-Identifier: Apache-2.0
// Goal: tables and curves of bounded size lose resolution, and no value. Method: sums over drawn
// values, beside plain maps.
#include "kernels/tensor/random.hpp"
#include "tests/doctest.hpp"
#include "tools/report/folding_table.hpp"
#include "tools/report/step_series.hpp"

#include <map>
#include <utility>

namespace folding_table_test {

using namespace troupe;

TEST_SUITE("tools/report/folding_table") {
  TEST_CASE("has a cell for each number while they fit") {
    folding_table table{4, 3};
    table.add(3, 2, 1.5);
    table.add(3, 2, 2);
    table.add(0, 1, 5);
    CHECK(table.rows().width() == 1);
    CHECK(table.rows().count() == 4);
    CHECK(table.columns().count() == 3);
    CHECK(table.at(3, 2).sum == 3.5);
    CHECK(table.at(3, 2).count == 2);
    CHECK(table.at(0, 1).sum == 5);
    CHECK(table.at(1, 1).count == 0);
  }

  TEST_CASE("adds up neighbours where numbers no longer fit") {
    random_stream stream{random_key{7, "cells"}};
    for (int round = 0; round < 20; ++round) {
      const size_t rows = 2 + stream.below(6);
      const size_t columns = 2 + stream.below(6);
      folding_table table{rows, columns};
      std::map<std::pair<uint64_t, uint64_t>, uint64_t> plain;
      for (int i = 0; i < 200; ++i) {
        auto row = stream.below(1 + static_cast<uint64_t>(i));
        auto column = stream.below(40);
        table.add(row, column, static_cast<double>(i));
        plain[{row, column}] += static_cast<uint64_t>(i);
      }
      std::map<std::pair<size_t, size_t>, uint64_t> folded;
      for (const auto& [place, sum] : plain)
        folded[{table.rows().cell_of(place.first), table.columns().cell_of(place.second)}] += sum;
      CHECK(table.rows().count() <= rows);
      CHECK(table.columns().count() <= columns);
      for (size_t row = 0; row < table.rows().count(); ++row)
        for (size_t column = 0; column < table.columns().count(); ++column)
          CHECK(table.at(row, column).sum == static_cast<double>(folded[{row, column}]));
    }
  }

  TEST_CASE("a curve keeps mean, least and greatest value of every stretch") {
    step_series series;
    double sum = 0;
    for (uint64_t step = 1; step <= 100'000; ++step) {
      series.add(step, static_cast<double>(step % 7));
      sum += static_cast<double>(step % 7);
    }
    CHECK(series.stretches().size() <= step_series::stretches_max);
    CHECK(series.width() == 256);
    uint64_t count = 0;
    for (const auto& one : series.stretches()) {
      CHECK(one.first_step % series.width() == 0);
      CHECK(one.least == 0);
      CHECK(one.greatest == 6);
      count += one.count;
      sum -= one.sum;
    }
    CHECK(count == 100'000);
    CHECK(sum == 0);
  }

  TEST_CASE("a curve leaves out what is not finite, and bears steps that lie far apart") {
    step_series series;
    series.add(5, std::numeric_limits<double>::quiet_NaN());
    CHECK(series.stretches().empty());
    for (uint64_t i = 0; i < 2000; ++i)
      series.add(i * 1'000'000'007, 1);
    CHECK(series.stretches().size() <= step_series::stretches_max);
  }
}

} // namespace folding_table_test
