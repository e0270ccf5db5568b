// SPDX-License-Identifier: Apache-2.0
// Goal: each attempt of a job has a folder of its own, and finds those before it. Method: counts as
// a launcher sets them.
#include "tests/doctest.hpp"
#include "tools/run/restart.hpp"

#include <filesystem>

namespace restart_test {

using namespace troupe;

namespace {

attempt_folders folders_of(const std::string& run_dir, const std::string& restarts) {
  auto environment = fixed_environment({{"TROUPE_RESTART_COUNT", restarts}});
  auto folders = find_attempt(run_dir, false, environment);
  REQUIRE(folders);
  return *folders;
}

} // namespace

TEST_SUITE("tools/run/restart") {
  TEST_CASE("a job that is not counted has one folder") {
    auto folders = find_attempt("nowhere/run", false, fixed_environment({}));
    REQUIRE(folders);
    CHECK(folders->own == "nowhere/run");
    CHECK(folders->earlier.empty());
  }

  TEST_CASE("each attempt has a folder of its own, and those before it, the newest first") {
    CHECK(folders_of("nowhere/run", "0").own == "nowhere/run");
    auto third = folders_of("nowhere/run", "2");
    CHECK(third.own == "nowhere/run-3");
    CHECK(third.earlier == std::vector<std::string>{"nowhere/run-2", "nowhere/run"});
  }

  TEST_CASE("a slash at the end of a folder's name changes nothing") {
    auto second = folders_of("nowhere/run/", "1");
    CHECK(second.own == "nowhere/run-2");
    CHECK(second.earlier == std::vector<std::string>{"nowhere/run"});
  }

  TEST_CASE("no attempt lies in the folder of another, however that is written") {
    for (const auto* run_dir :
         {"nowhere/run/.", "nowhere/run/./", "nowhere/run//.//", "nowhere/run/./."}) {
      auto second = folders_of(run_dir, "1");
      CHECK(second.own == "nowhere/run-2");
      CHECK(second.earlier == std::vector<std::string>{"nowhere/run"});
    }
    const auto here = std::filesystem::current_path();
    CHECK(folders_of(".", "1").own == here.string() + "-2");
    CHECK(folders_of("./", "1").own == here.string() + "-2");
    CHECK(folders_of("..", "1").own == here.parent_path().string() + "-2");
    CHECK(folders_of("../.", "0").own == here.parent_path().string());
    CHECK(folders_of("nowhere/..", "1").own == here.string() + "-2");
    CHECK(folders_of("./run", "1").own == "./run-2");
    CHECK(folders_of("/", "0").own == "/");
  }

  TEST_CASE("a count that is no number is refused") {
    auto environment = fixed_environment({{"TROUPE_RESTART_COUNT", "many"}});
    auto refused = find_attempt("nowhere/run", false, environment);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::invalid_argument);
  }
}

} // namespace restart_test
