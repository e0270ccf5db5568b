// SPDX-License-Identifier: Apache-2.0
// Goal: one line per evaluation. Method: whole files compared as text.
#include "actors/recording/evaluation_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <cmath>

namespace evaluation_file_test {

TEST_SUITE("actors/recording/evaluation_file") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("writes a line per evaluation, and leaves an unknown result empty") {
    test::scratch_folder folder;
    auto file = evaluation_file::create(folder / "evaluations.csv", "bits_per_byte");
    REQUIRE(file);
    CHECK(file->append(8, 1600ms, 2.625));
    CHECK(file->append(9, 1700ms, std::nan("")));
    CHECK(file->flush());
    CHECK(test::content(folder / "evaluations.csv")
          == evaluation_file::header("bits_per_byte") + "8,1.6,2.625\n" + "9,1.7,\n");
  }

  TEST_CASE("goes on behind the lines of an earlier evaluator, but for one that was cut off") {
    test::scratch_folder folder;
    auto path = folder / "evaluations.csv";
    test::write(path, evaluation_file::header("bits_per_byte") + "8,1.6,2.625\n9,1.7,\n10,1.");
    auto file = evaluation_file::go_on(path, "bits_per_byte");
    REQUIRE(file);
    CHECK(file->last_step() == 9);
    CHECK(file->append(11, 2s, 2.5));
    CHECK(file->flush());
    CHECK(test::content(path)
          == evaluation_file::header("bits_per_byte") + "8,1.6,2.625\n" + "9,1.7,\n"
               + "11,2,2.5\n");
    CHECK(evaluation_file::go_on(path, "bits_per_byte")->last_step() == 11);
  }

  TEST_CASE("begins anew where nothing was, or nothing but half a header") {
    test::scratch_folder folder;
    for (const auto* before : {"", "step,sec"}) {
      auto path = folder / "evaluations.csv";
      if (*before != 0) test::write(path, before);
      auto file = evaluation_file::go_on(path, "bits_per_byte");
      REQUIRE(file);
      CHECK_FALSE(file->last_step());
      CHECK(test::content(path) == evaluation_file::header("bits_per_byte"));
    }
  }

  TEST_CASE("refuses to go on with another table, and leaves it as it is") {
    test::scratch_folder folder;
    test::write(folder / "evaluations.csv", "a,b\n1,2\n");
    CHECK(evaluation_file::go_on(folder / "evaluations.csv", "bits_per_byte").error().code
          == errc::failed_precondition);
    CHECK(test::content(folder / "evaluations.csv") == "a,b\n1,2\n");
  }

  TEST_CASE("refuses to go on with a table that cannot be read, and leaves it as it is") {
    test::scratch_folder folder;
    auto path = folder / "evaluations.csv";
    std::filesystem::create_symlink(path, path); // not even root can open it
    const auto refused = evaluation_file::go_on(path, "bits_per_byte");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::resource);
    CHECK(refused.error().message.starts_with("cannot read " + path.string() + ": "));
    CHECK(std::filesystem::is_symlink(path));
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(evaluation_file::go_on(path, "bits_per_byte").error().code == errc::invalid_argument);
    CHECK(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
  }

  TEST_CASE("reports a full disk when it creates the file") {
    const auto file = evaluation_file::create("/dev/full", "bits_per_byte");
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::resource);
  }
}

} // namespace evaluation_file_test
