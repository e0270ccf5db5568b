// SPDX-License-Identifier: Apache-2.0
// Goal: a process that crashes tells what its actors did, and dies of what it died of. Method:
// child processes that crash.
#include "actors/observing/crash_recorder.hpp"
#include "actors/observing/observatory.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace crash_recorder_test {

using namespace troupe;
using namespace troupe::test;

namespace {

struct crashing_process {
  std::filesystem::path record;
  std::function<job_time()> clock = [] { return job_time{1500}; };
  uint64_t other_actors = 0;

  /// The wait status of a process that has a crash recorder and then does `deed`.
  template <class Deed>
  int status_after(Deed deed) const {
    auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int number : {SIGSEGV, SIGABRT, SIGFPE}) // the test engine's own handlers
        std::signal(number, SIG_DFL);
      observatory observed{clock};
      auto* seen = observed.watch(4);
      seen->set_name("replica 1");
      seen->begin_message({job_time{1000}, nullptr, 4, 3});
      for (uint64_t i = 0; i < other_actors; ++i)
        static_cast<void>(observed.watch(5 + i));
      crash_recorder recorder{observed, record};
      deed();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
  }
};

} // namespace

TEST_SUITE("actors/observing/crash_recorder") {
  TEST_CASE("a process that crashes leaves a record, and the status it would have had") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    for (int number : {SIGSEGV, SIGABRT, SIGFPE}) {
      auto status = crashing_process{record}.status_after([number] { raise(number); });
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
    CHECK(crashing_process{record}.status_after([] {}) == 0);
    CHECK(!std::filesystem::exists(record));
  }

  TEST_CASE("where several threads crash at once the record is whole") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    constexpr uint64_t other_actors = 20'000; // a record of several system calls
    for (auto numbers :
         {std::array{SIGSEGV, SIGSEGV, SIGSEGV}, std::array{SIGSEGV, SIGFPE, SIGBUS}}) {
      auto crash_in_threads = [&] {
        std::latch all{3};
        auto crash = [&](int number) {
          all.arrive_and_wait();
          raise(number);
        };
        const std::jthread first{crash, numbers[0]};
        const std::jthread second{crash, numbers[1]};
        crash(numbers[2]);
      };
      auto status = crashing_process{.record = record, .other_actors = other_actors}.status_after(
        crash_in_threads);
      CHECK(WIFSIGNALED(status));
      CHECK(std::ranges::count(numbers, WTERMSIG(status)) > 0);
      auto text = content(record);
      CHECK(text.starts_with("troupe flight record: crash (SIG"));
      CHECK(std::ranges::count(text, '\n') == 7 + 2 * static_cast<ptrdiff_t>(other_actors));
      CHECK(text.ends_with(" errors\n"));
      std::filesystem::remove(record);
    }
    CHECK(std::filesystem::is_empty(scratch.path()));
  }

  TEST_CASE("a crash while the record is written ends the process, and keeps the record before") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    write(record, "the record before\n");
    auto crash_again = []() -> job_time { __builtin_trap(); }; // SIGILL
    for (int number : {SIGSEGV, SIGILL}) {
      auto status = crashing_process{.record = record, .clock = crash_again}.status_after(
        [number] { raise(number); });
      CHECK(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == SIGILL);
      CHECK(content(record) == "the record before\n");
    }
  }

  TEST_CASE("a record behind a link replaces the file there") {
    scratch_folder scratch;
    auto record = scratch.path() / "flight.txt";
    std::filesystem::create_symlink("elsewhere.txt", record);
    crashing_process{record}.status_after([] { raise(SIGSEGV); });
    CHECK(std::filesystem::is_symlink(record));
    CHECK(content(scratch.path() / "elsewhere.txt").starts_with("troupe flight record: "));
  }
}

} // namespace crash_recorder_test
