// SPDX-License-Identifier: Apache-2.0
// Goal: the exit code says why a job has not begun. Method: reasons, with and without a cluster.
#include "tests/doctest.hpp"
#include "tests/taken_output.hpp"
#include "tools/job/job_end.hpp"

#include <cstdio>

namespace job_end_test {

namespace {

using namespace troupe;

resolved_cluster cluster_of(size_t tasks) {
  resolved_cluster cluster{.tasks = {{.type = "chief"}}, .own = 0};
  for (uint32_t worker = 0; cluster.tasks.size() < tasks; ++worker)
    cluster.tasks.push_back({.type = "worker", .index = worker, .address = "127.0.0.1:1"});
  return cluster;
}

exit_code code_of(errc reason, size_t tasks, exit_code otherwise) {
  return static_cast<exit_code>(refuse_job("job_end_test", {reason, "this line is part of a test"},
                                           cluster_of(tasks), 0, otherwise));
}

} // namespace

TEST_SUITE("tools/job/job_end") {
  TEST_CASE("a process that is missing, or of another job, is no fault of the others' options") {
    for (auto reason : {errc::deadline_exceeded, errc::failed_precondition, errc::unavailable}) {
      CHECK(code_of(reason, 2, exit_code::usage) == exit_code::no_cluster);
      CHECK(code_of(reason, 1, exit_code::usage) == exit_code::usage);
    }
    CHECK(code_of(errc::invalid_argument, 2, exit_code::usage) == exit_code::usage);
  }

  TEST_CASE("a checkpoint that does not fit is to blame in a cluster, too") {
    for (size_t tasks : {1, 2}) {
      CHECK(code_of(errc::failed_precondition, tasks, exit_code::bad_checkpoint)
            == exit_code::bad_checkpoint);
      CHECK(code_of(errc::type_mismatch, tasks, exit_code::bad_checkpoint)
            == exit_code::bad_checkpoint);
    }
    CHECK(code_of(errc::unavailable, 2, exit_code::bad_checkpoint) == exit_code::no_cluster);
  }

  TEST_CASE("no command draws plots whose scripts could not be written") {
    test::scratch_folder scratch;
    auto said = [](const std::filesystem::path& folder) {
      std::fflush(stdout);
      test::taken_output output{STDOUT_FILENO};
      draw(folder, {}, plots_of::steps, false);
      std::fflush(stdout);
      return output.said();
    };
    CHECK(said(scratch.path())
          == "no plots: the run was asked to stop; to draw them type\n  cd "
               + scratch.path().native() + " && gnuplot steps.gp\n");
    auto line = said(scratch / "gone");
    CHECK(line.starts_with("no plots: cannot "));
    CHECK(line.find("gone/loss.gp") != std::string::npos);
    CHECK(line.find("to draw them") == std::string::npos);
  }
}

} // namespace job_end_test
