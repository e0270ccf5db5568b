// SPDX-License-Identifier: Apache-2.0
// Goal: any job leaves a run folder, with two hooks and nothing else. Method: a job in virtual
// time, and its files.
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/small_job.hpp"
#include "tools/run/progress_hook.hpp"
#include "tools/run/run_folder_hook.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace run_folder_hook_test {

namespace {

using namespace troupe;

size_t lines_in(const std::filesystem::path& file) {
  const auto text = test::content(file);
  return static_cast<size_t>(std::ranges::count(text, '\n'));
}

/// Files of this process cannot grow beyond a size, for as long as it is there.
class limited_files {
public:
  explicit limited_files(rlim_t bytes_max) : on_excess_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes_max, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }

  ~limited_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, on_excess_);
  }

  limited_files(const limited_files&) = delete;
  limited_files& operator=(const limited_files&) = delete;

private:
  rlimit before_{};
  void (*on_excess_)(int);
};

} // namespace

TEST_SUITE("tools/run/run_folder_hook") {
  TEST_CASE("a job leaves a line for each step and gradient, and its totals") {
    test::scratch_folder folder;
    test::small_job job{{2, 2, sync_policy::latest_token}};
    auto files = std::make_shared<run_folder_hook>(job.strategy, folder / "one");
    auto seen = job.run_idle(
      {.steps = 5, .hooks = {files, std::make_shared<progress_hook>()}, .pace = test::one_second});
    REQUIRE_FALSE(seen.report.failure);
    CHECK(lines_in(folder / "one/metrics.csv") == 1 + 5);
    CHECK(lines_in(folder / "one/ledger.csv") == 1 + 5 * 2);
    CHECK(lines_in(folder / "one/replicas.csv") == 1 + 2);
    CHECK(test::content(folder / "one/timeline.json").find("owner w") != std::string::npos);
    CHECK(files->totals().step_times().count() == 5);
  }

  TEST_CASE("a notice and trouble bring all records to the disk, since no step may follow") {
    test::scratch_folder folder;
    test::small_job job{{3, 4, sync_policy::latest_token}};
    run_folder_hook files{job.strategy, folder.path()};
    const session_control no_control{[](const std::string&) {}};
    auto steps_on_disk = [&] { return lines_in(folder / "metrics.csv") - 1; };
    auto step = [&](uint64_t number) {
      auto record = test::step_with_a_straggler();
      record.step = number;
      files.after_step(no_control, record);
    };
    step(1);
    step(2);
    files.keep_notice("step 3 takes 10 s so far");
    CHECK(steps_on_disk() == 2);
    CHECK(lines_in(folder / "ledger.csv") == 1 + 2 * 4);
    const auto timeline_bytes = std::filesystem::file_size(folder / "timeline.json");
    step(3);
    files.on_trouble("lost replica 3");
    CHECK(steps_on_disk() == 3);
    CHECK(std::filesystem::file_size(folder / "timeline.json") > timeline_bytes);
  }

  TEST_CASE("a replica that never gave a gradient is in the totals, with zeros") {
    test::scratch_folder folder;
    test::small_job job{{2, 3, sync_policy::latest_token}};
    auto files = std::make_shared<run_folder_hook>(job.strategy, folder.path());
    auto pace = [](uint32_t replica, uint64_t, job_time) {
      return replica == 2 ? std::chrono::hours{1} : job_time{std::chrono::seconds{1}};
    };
    auto seen = job.run_idle({.steps = 5, .hooks = {files}, .pace = pace});
    REQUIRE_FALSE(seen.report.failure);
    CHECK(files->totals().replicas().at(2) == replica_summary{});
    CHECK(test::content(folder / "replicas.csv").ends_with("\n2,0,0,0,0,0,0,0,0\n"));
  }

  TEST_CASE("an evaluation after the end of the job is in its file, too") {
    test::scratch_folder folder;
    test::small_job job{{2, 2, sync_policy::latest_token}};
    run_folder_hook files{job.strategy, folder.path()};
    files.end({});
    files.on_evaluation(7, std::chrono::seconds{3}, 0.25);
    files.finish();
    CHECK(test::content(folder / "evaluations.csv").find("\n7,3") != std::string::npos);
  }

  TEST_CASE("the warning that a file has ended is a notice") {
    test::scratch_folder folder;
    test::small_job job{{3, 4, sync_policy::latest_token}};
    std::vector<std::string> warnings;
    run_folder_hook files{
      job.strategy,
      folder.path(),
      {.program = "trainer", .ledger_bytes_max = 200, .on_warning = [&](const std::string& line) {
         warnings.push_back(line);
       }}};
    const session_control no_control{[](const std::string&) {}};
    files.after_step(no_control, test::step_with_a_straggler());
    files.after_step(no_control, test::step_with_a_straggler());
    const std::string warning = "trainer: ledger.csv ends with step 0: it is as large as it may "
                                "be; the run goes on without it";
    CHECK(warnings == std::vector{warning});
    CHECK(test::content(folder / "notices.csv") == "step,text\n8," + warning + "\n");
  }

  TEST_CASE("where notices cannot be written a warning says so once") {
    test::scratch_folder folder;
    test::small_job job{{2, 2, sync_policy::latest_token}};
    std::vector<std::string> warnings;
    run_folder_hook files{job.strategy, folder.path(), {.on_warning = [&](const std::string& line) {
                            warnings.push_back(line);
                          }}};
    {
      const limited_files limit{4096};
      files.keep_notice(std::string(8000, 'x'));
      files.keep_notice("one more");
    }
    CHECK(warnings
          == std::vector{"troupe: cannot write " + (folder / "notices.csv").string()
                         + ": File too large; the run goes on without it"});
  }

  TEST_CASE("names a folder that cannot be made") {
    test::scratch_folder folder;
    test::write(folder / "file", "");
    test::small_job job{{2, 2, sync_policy::latest_token}};
    auto refused = test::refusal_of([&] { run_folder_hook{job.strategy, folder / "file/one"}; });
    CHECK(refused.code == errc::resource);
    CHECK(refused.message.find("file/one/metrics.csv") != std::string::npos);
  }
}

} // namespace run_folder_hook_test
