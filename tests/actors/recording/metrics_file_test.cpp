// SPDX-License-Identifier: Apache-2.0
// Goal: one line per step with the figures in the right columns. Method: whole files compared as
// text.
#include "actors/recording/metrics_file.hpp"
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>

namespace metrics_file_test {

TEST_SUITE("actors/recording/metrics_file") {
  using namespace troupe;

  TEST_CASE("starts with the names of the columns") {
    test::scratch_folder folder;
    const auto file = metrics_file::create(folder / "metrics.csv");
    REQUIRE(file);
    CHECK(test::content(folder / "metrics.csv") == metrics_file::header);
  }

  TEST_CASE("writes a line per step, and leaves unknown fields empty") {
    test::scratch_folder folder;
    auto file = metrics_file::create(folder / "metrics.csv");
    REQUIRE(file);
    CHECK(file->append(test::step_with_a_straggler()));
    CHECK(file->append(step_record{}));
    CHECK(file->flush());
    CHECK(test::content(folder / "metrics.csv")
          == std::string{metrics_file::header} + "8,1.5,3,192,3,1,0,4,3,0.5,0.05\n"
               + "0,0,,,0,0,0,0,0,0,0\n");
  }

  TEST_CASE("has as many fields in every line as in the first") {
    test::scratch_folder folder;
    auto file = metrics_file::create(folder / "metrics.csv");
    REQUIRE(file);
    CHECK(file->append(test::step_with_a_straggler()));
    CHECK(file->flush());
    const auto text = test::content(folder / "metrics.csv");
    CHECK(std::count(text.begin(), text.end(), ',') == 2 * 10);
  }

  TEST_CASE("reports a full disk when it creates the file") {
    const auto file = metrics_file::create("/dev/full");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }
}

} // namespace metrics_file_test
