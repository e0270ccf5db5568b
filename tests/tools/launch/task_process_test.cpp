// SPDX-License-Identifier: Apache-2.0
// Goal: a task that cannot start names the culprit. Method: this process lowers its own limit on
// open files.
#include "tests/doctest.hpp"
#include "tools/launch/task_process.hpp"

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>

namespace task_process_test {

using namespace troupe;

namespace {

const std::array<std::string, 1> words{"true"};

/// Lets this process open so many further files, during its lifetime.
class few_files {
public:
  explicit few_files(int count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    int next = 0;
    for (int left = count; left > 0; ++next)
      if (::fcntl(next, F_GETFD) == -1) --left;
    const rlimit limit{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  few_files(const few_files&) = delete;
  few_files& operator=(const few_files&) = delete;

  ~few_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_{};
};

std::string refusal(int files) {
  few_files limited{files};
  auto started = start_task(words, {});
  REQUIRE_FALSE(started);
  CHECK(started.error().code == errc::resource);
  return started.error().message;
}

} // namespace

TEST_SUITE("tools/launch/task_process") {
  TEST_CASE("a null device that cannot be opened is named, and not taken for the program") {
    constexpr int pipe_ends = 6;
    CHECK(refusal(pipe_ends)
          == "cannot start true: /dev/null: Too many open files; ulimit -n sets the limit");
    CHECK(refusal(pipe_ends - 1)
          == "cannot start true: Too many open files; ulimit -n sets the limit");
  }
}

} // namespace task_process_test
