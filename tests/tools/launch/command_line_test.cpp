// SPDX-License-Identifier: Apache-2.0
// Goal: `troupe launch` takes what it documents, and leaves the program's own words alone. Method:
// command lines; the refused ones stand in launch_test.py.
#include "tests/doctest.hpp"
#include "tools/launch/command_line.hpp"

#include <vector>

namespace command_line_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

expected<launch_options> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "launch");
  return parse_launch_options(static_cast<int>(words.size()), words.data());
}

} // namespace

TEST_SUITE("tools/launch/command_line") {
  TEST_CASE("takes all options") {
    auto options
      = parsed({"-n",          "4",     "--ps",         "2",       "--chief",      "--evaluator",
                "--log-dir",   "logs",  "--grace",      "0.25",    "--job-id",     "a-1",
                "--fold",      "never", "--kill-every", "0.5",     "--kill-tasks", "ps",
                "--kill-seed", "7",     "--",           "program", "-n",           "--",
                "--help",      ""});
    REQUIRE(options);
    CHECK(options->workers == 4);
    CHECK(options->parameter_servers == 2);
    CHECK(options->chief);
    CHECK(options->evaluator);
    CHECK(options->log_dir == "logs");
    CHECK(options->grace == 250ms);
    CHECK(options->job_id == "a-1");
    CHECK(options->fold == fold_choice::never);
    CHECK(options->kill_every == 500ms);
    CHECK(options->kill_tasks == "ps");
    CHECK(options->kill_seed == 7);
    CHECK(options->program == std::vector<std::string>{"program", "-n", "--", "--help", ""});
  }

  TEST_CASE("needs but the number of workers and a program") {
    auto options = parsed({"--workers=1", "--", "program"});
    REQUIRE(options);
    CHECK(options->workers == 1);
    CHECK(options->parameter_servers == 0);
    CHECK_FALSE(options->chief);
    CHECK_FALSE(options->evaluator);
    CHECK(options->grace == 10s);
    CHECK(options->job_id.empty());
    CHECK(options->fold == fold_choice::automatic);
    CHECK_FALSE(options->kill_every);
  }

  TEST_CASE("takes one task of a job that is spread over hosts") {
    auto options = parsed({"--task", "worker:1", "--send-output", "node0:9500", "--", "program"});
    REQUIRE(options);
    CHECK(options->task == "worker:1");
    CHECK(options->send_output == host_port{"node0", 9500});
    options = parsed(
      {"--task", "chief", "--collect-output", "[::1]:9500", "--insecure-network", "--", "program"});
    REQUIRE(options);
    CHECK(options->collect_output == host_port{"::1", 9500});
    CHECK(options->insecure_network);
  }

  TEST_CASE("tells what there is before it judges anything") {
    auto options = parsed({"-n", "x", "--help"});
    REQUIRE(options);
    CHECK_FALSE(options->answer.empty());
  }

  TEST_CASE("refuses a program without letters") {
    CHECK_FALSE(parsed({"-n", "1", "--", ""}));
    CHECK_FALSE(parsed({"-n", "1", "--"}));
    CHECK_FALSE(parsed({}));
  }

  TEST_CASE("refuses a job id that is too long for anything") {
    std::string id(64, 'a');
    CHECK(parsed({"-n", "1", "--job-id", id.c_str(), "--", "true"}));
    id += 'a';
    auto refused = parsed({"-n", "1", "--job-id", id.c_str(), "--", "true"});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::invalid_argument);
  }
}

} // namespace command_line_test
