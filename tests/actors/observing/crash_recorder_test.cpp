// SPDX-License-Identifier: Apache-2.0
// Goal: a process that crashes tells what its actors did, and dies of what it died of. Method:
// child processes that crash.
#include "actors/observing/crash_recorder.hpp"
#include "actors/observing/observatory.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace crash_recorder_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// The wait status of a process that has a crash recorder and then does `deed`.
template <class Deed>
int status_after(const std::filesystem::path& record, Deed deed) {
  auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (int number : {SIGSEGV, SIGABRT, SIGFPE}) // the test engine's own handlers
      std::signal(number, SIG_DFL);
    observatory observed{[] { return job_time{1500}; }};
    auto seen = observed.watch(4);
    seen->set_name("replica 1");
    seen->begin_message({job_time{1000}, nullptr, 4, 3});
    crash_recorder recorder{observed, record};
    deed();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

} // namespace

TEST_SUITE("actors/observing/crash_recorder") {
  TEST_CASE("a process that crashes leaves a record, and the status it would have had") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    for (int number : {SIGSEGV, SIGABRT, SIGFPE}) {
      auto status = status_after(record, [number] { raise(number); });
      CHECK(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == number);
      auto text = content(record);
      CHECK(text.starts_with("troupe flight record: crash (SIG"));
      CHECK(text.find("replica 1: working") != std::string::npos);
      CHECK(text.find("  replica 1\n") != std::string::npos);
      std::filesystem::remove(record);
    }
  }

  TEST_CASE("a process that does not crash leaves none") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    CHECK(status_after(record, [] {}) == 0);
    CHECK(!std::filesystem::exists(record));
  }
}

} // namespace crash_recorder_test
