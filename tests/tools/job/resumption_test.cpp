// SPDX-License-Identifier: Apache-2.0
// Goal: a job that is started again keeps its progress, or says in a line why it cannot. Method:
// folders of attempts, with checkpoints that are damaged or cannot be read.
#include "actors/checkpoint/checkpoint_directory.hpp"
#include "actors/checkpoint/job_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/taken_output.hpp"
#include "tools/job/resumption.hpp"

#include <filesystem>
#include <string>

namespace resumption_test {

namespace {

using namespace troupe;

/// A job that is started for the third time.
struct attempts {
  void save(const std::string& run, uint64_t step) const {
    auto content = to_content({.step = step}, {});
    auto directory = checkpoint_directory::open(checkpoints(run)).value();
    CHECK(directory.write(step, content.tensors, content.metadata));
  }

  void damage(const std::string& run, uint64_t step) const {
    std::filesystem::create_directories(checkpoints(run));
    test::write(checkpoint_directory::look_at(checkpoints(run)).path_of(step), "damaged");
  }

  expected<job_beginning> beginning(const std::string& resumed = {}) const {
    test::taken_output output;
    auto found
      = find_beginning("trainer", resumed.empty() ? resumed : path(resumed),
                       {.own = path("run-3"), .earlier = {path("run-2"), path("run")}}, {}, 30);
    if (found) CHECK(found->folder.empty() != found->resume.has_value());
    return found;
  }

  std::filesystem::path checkpoints(const std::string& run) const {
    return folder / run / "checkpoints";
  }

  std::string path(const std::string& run) const { return (folder / run).string(); }

  test::scratch_folder folder;
};

} // namespace

TEST_SUITE("tools/job/resumption") {
  TEST_CASE("a job goes on from its last attempt that has saved, or begins") {
    attempts job;
    CHECK_FALSE(job.beginning()->resume);
    std::filesystem::create_directories(job.checkpoints("run-2"));
    CHECK_FALSE(job.beginning()->resume);
    job.save("run", 10);
    CHECK(job.beginning()->folder == job.path("run"));
    job.save("run-2", 20);
    CHECK(job.beginning()->resume->step == 20);
    job.save("run-2", 30); // the last
    CHECK(job.beginning()->resume->step == 20);
  }

  TEST_CASE("attempts whose checkpoints are all damaged are not begun anew") {
    attempts job;
    job.damage("run-2", 20);
    auto refused = job.beginning();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::malformed);
    CHECK(refused.error().message
          == job.path("run-2")
               + ": its checkpoints are damaged, and without them the job would begin at step 0; "
                 "name a run to go on with by --resume, or remove that folder to begin anew");
    job.save("other", 5);
    CHECK(job.beginning("other")->resume->step == 5);
    job.save("run", 10);
    CHECK(job.beginning("other")->resume->step == 10);
  }

  TEST_CASE("a checkpoint or a folder that cannot be read is refused, whatever lies before it") {
    attempts job;
    job.save("run", 10);
    auto loop = job.checkpoints("run-2");
    std::filesystem::create_directories(loop.parent_path());
    std::filesystem::create_symlink(loop, loop);
    CHECK(job.beginning().error().code == errc::resource);
    std::filesystem::remove(loop);
    job.save("run-2", 15);
    auto unreadable = loop / "checkpoint-20.safetensors";
    std::filesystem::create_symlink(unreadable, unreadable);
    auto refused = job.beginning().error();
    CHECK(refused.code == errc::resource);
    CHECK(refused.message.find("cannot read " + unreadable.string()) != std::string::npos);
  }
}

} // namespace resumption_test
