// SPDX-License-Identifier: Apache-2.0
// Goal: every task is told the same cluster, in TensorFlow's words. Method: small jobs.
#include "tests/doctest.hpp"
#include "tools/launch/tasks.hpp"

#include <algorithm>

namespace tasks_test {

using namespace troupe;

namespace {

using texts = std::vector<std::string>;

const std::vector<uint16_t> ports{1, 2, 3, 4};

} // namespace

TEST_SUITE("tools/launch/tasks") {
  TEST_CASE("lists the chief, workers and parameter servers") {
    launch_options options{.workers = 2, .parameter_servers = 1, .chief = true};
    CHECK(task_count(options) == 4);
    auto tasks = launch_tasks(options, ports);
    CHECK(tasks
          == std::vector<launch_task>{
            {"chief", 0, 1}, {"worker", 0, 2}, {"worker", 1, 3}, {"ps", 0, 4}});
    CHECK(tasks[2].name() == "worker:1");
    CHECK(tasks[2].log_name() == "worker-1.log");
  }

  TEST_CASE("an evaluator comes last, so that no other task has another number for it") {
    auto tasks = launch_tasks({.workers = 1, .parameter_servers = 1, .evaluator = true},
                              std::vector<uint16_t>{7, 8, 9});
    CHECK(tasks == std::vector<launch_task>{{"worker", 0, 7}, {"ps", 0, 8}, {"evaluator", 0, 9}});
  }

  TEST_CASE("names several tasks by ranges") {
    auto tasks = launch_tasks({.workers = 4, .parameter_servers = 2, .chief = true},
                              std::vector<uint16_t>{1, 2, 3, 4, 5, 6, 7});
    CHECK(task_ranges(tasks, {3}) == "worker:2");
    CHECK(task_ranges(tasks, {4, 1, 2, 3}) == "worker:0-3");
    CHECK(task_ranges(tasks, {0, 1, 2, 4, 6}) == "chief:0 worker:0-1,3 ps:1");
    CHECK(task_ranges(tasks, {1, 3, 5, 6}) == "worker:0,2 ps:0-1");
  }

  TEST_CASE("names by ranges also tasks that came in another order") {
    std::vector<launch_task> tasks{{"chief", 0},  {"worker", 2}, {"ps", 0},
                                   {"worker", 0}, {"worker", 1}, {"ps", 1}};
    CHECK(task_ranges(tasks, {0, 1, 2, 3, 4, 5}) == "chief:0 worker:0-2 ps:0-1");
  }

  TEST_CASE("spells TF_CONFIG as TensorFlow does") {
    auto tasks = launch_tasks({.workers = 2, .parameter_servers = 1, .chief = true}, ports);
    CHECK(tf_config(tasks, tasks[2])
          == R"({"cluster":{"chief":["127.0.0.1:1"],"worker":["127.0.0.1:2","127.0.0.1:3"],)"
             R"("ps":["127.0.0.1:4"]},"task":{"type":"worker","index":1}})");
  }

  TEST_CASE("a task whose job is started elsewhere finds its environment as it was") {
    std::vector<launch_task> tasks{{.type = "worker", .index = 1, .port = 0}};
    texts inherited{"TF_CONFIG={}", "TROUPE_JOB_ID=theirs", "TROUPE_RESTART_COUNT=9", "A=b"};
    CHECK(task_environment(inherited, tasks, tasks[0], "", 2, 8, "@x")
          == texts{"TF_CONFIG={}", "TROUPE_JOB_ID=theirs", "A=b", "TROUPE_RESTART_COUNT=2",
                   "TROUPE_LAUNCHER=@x"});
    CHECK(task_environment(inherited, tasks, tasks[0], "ours", std::nullopt, 8)
          == texts{"TF_CONFIG={}", "TROUPE_RESTART_COUNT=9", "A=b", "TROUPE_JOB_ID=ours"});
  }

  TEST_CASE("a job that is started here counts its own restarts, not those of an outer job") {
    auto tasks = launch_tasks({.workers = 1}, std::vector<uint16_t>{7});
    auto is_counted = [](const std::string& line) { return line.starts_with("TROUPE_RESTART"); };
    auto lines = task_environment(texts{"TROUPE_RESTART_COUNT=9"}, tasks, tasks[0], "id", {}, 8);
    CHECK(std::ranges::none_of(lines, is_counted));
  }

  TEST_CASE("names no kind of task that the job has none of") {
    auto tasks = launch_tasks({.workers = 1}, std::vector<uint16_t>{7});
    CHECK(tf_config(tasks, tasks[0])
          == R"({"cluster":{"worker":["127.0.0.1:7"]},"task":{"type":"worker","index":0}})");
  }

  TEST_CASE("replaces what an outer job left in the environment, and nothing else") {
    auto tasks = launch_tasks({.workers = 1}, std::vector<uint16_t>{7});
    texts inherited{"A=1",
                    "TF_CONFIG=old",
                    "TROUPE_JOB_ID=old",
                    "TF_CONFIG_DIR=kept",
                    "TROUPE_LAUNCHER=@old",
                    "OMP_NUM_THREADS=3"};
    auto lines = task_environment(inherited, tasks, tasks[0], "id", {}, 8);
    CHECK(lines
          == texts{"A=1", "TF_CONFIG_DIR=kept", "OMP_NUM_THREADS=3",
                   "TF_CONFIG=" + tf_config(tasks, tasks[0]), "TROUPE_JOB_ID=id"});
    auto told = task_environment(inherited, tasks, tasks[0], "id", {}, 8, "@new");
    CHECK(std::ranges::count(told, "TROUPE_LAUNCHER=@new") == 1);
    CHECK(std::ranges::count(told, "TROUPE_LAUNCHER=@old") == 0);
  }

  TEST_CASE("a task has its share of the processors, and at least one") {
    auto tasks = launch_tasks({.workers = 3}, std::vector<uint16_t>{1, 2, 3});
    for (auto [processors, share] : {std::pair{8, "2"}, {3, "1"}, {2, "1"}, {0, "1"}}) {
      auto lines = task_environment({}, tasks, tasks[0], "id", {}, static_cast<size_t>(processors));
      CHECK(std::ranges::count(lines, "OMP_NUM_THREADS=" + std::string{share}) == 1);
    }
  }
}

} // namespace tasks_test
