// SPDX-License-Identifier: Apache-2.0
// Goal: one line per evaluation. Method: whole files compared as text.
#include "actors/recording/evaluation_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <cmath>

TEST_SUITE("actors/recording/evaluation_file") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("writes a line per evaluation, and leaves an unknown result empty") {
    test::scratch_folder folder;
    auto file = evaluation_file::create(folder / "evaluations.csv");
    REQUIRE(file);
    CHECK(file->append(8, 1600ms, 2.625));
    CHECK(file->append(9, 1700ms, std::nan("")));
    CHECK(file->flush());
    CHECK(test::content(folder / "evaluations.csv")
          == std::string{evaluation_file::header} + "8,1.6,2.625\n" + "9,1.7,\n");
  }

  TEST_CASE("reports a full disk when it creates the file") {
    const auto file = evaluation_file::create("/dev/full");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }
}
