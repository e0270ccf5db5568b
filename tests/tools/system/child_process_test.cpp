// SPDX-License-Identifier: Apache-2.0
// Goal: another program's end is told from its failure, its absence and its hanging. Method: the
// smallest programs of the system.
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tools/system/child_process.hpp"
#include "tools/system/signal_watch.hpp"

namespace child_process_test {

TEST_SUITE("tools/system/child_process") {
  using namespace troupe;
  using namespace std::chrono_literals;

  TEST_CASE("runs a program in a folder, without a shell") {
    test::scratch_folder folder;
    CHECK(run({{"touch", "a file; echo"}, folder.path()}));
    CHECK(std::filesystem::exists(folder / "a file; echo"));
  }

  TEST_CASE("reports a failure") {
    const auto failed = run({{"false"}, "/"});
    REQUIRE_FALSE(failed);
    CHECK(failed.error() == error{errc::resource, "false failed with 1"});
  }

  TEST_CASE("reports a program that is not there") {
    const auto missing = run({{"troupe-no-such-program"}, "/"});
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == errc::not_found);
    CHECK(missing.error().message.find("troupe-no-such-program") != std::string::npos);
  }

  TEST_CASE("reports a program that died of a signal") {
    const auto died = run({{"sh", "-c", "kill -9 $$"}, "/"});
    REQUIRE_FALSE(died);
    CHECK(died.error().message == "sh died of signal 9");
  }

  TEST_CASE("a program dies of signals that this process ignores") {
    ignore_write_signals();
    const auto died = run({{"sh", "-c", "kill -PIPE $$"}, "/"});
    for (int number : write_signals)
      std::signal(number, SIG_DFL);
    REQUIRE_FALSE(died);
    CHECK(died.error().message == "sh died of signal 13");
  }

  TEST_CASE("stops a program that takes too long") {
    const auto stopped = run({{"sleep", "1000"}, "/", 0ms});
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code == errc::deadline_exceeded);
  }
}

} // namespace child_process_test
