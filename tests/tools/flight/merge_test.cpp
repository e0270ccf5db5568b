// SPDX-License-Identifier: Apache-2.0
// Goal: the records of several tasks say together which one fell behind, and nonsense in a file is
// named. Method: records that are written as a job writes them, and files that no job wrote.
#include "actors/observing/flight_lines.hpp"
#include "tests/doctest.hpp"
#include "tools/flight/merge.hpp"

namespace flight_merge_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const message_kind* kind_called(std::string_view name) {
  for (const auto& kind : message_kinds())
    if (name == kind.name) return &kind;
  return nullptr;
}

flight_task record(const std::string& task, uint32_t replica, actor_doing doing, uint64_t step,
                   job_time when) {
  sighting token{.when = when, .kind = kind_called("Token"), .sender = 0, .step = step};
  actor_sight actor{.name = "replica " + std::to_string(replica),
                    .actor = 4,
                    .doing = doing,
                    .since = when,
                    .messages = {token}};
  auto lines = flight_lines({.task = task, .seen = 20s, .actors = {actor}}, "SIGUSR1");
  auto read = read_flight_task(lines, task);
  REQUIRE(read);
  return *read;
}

std::string refusal_of(std::string_view text) {
  auto read = read_flight_task(text, "a.jsonl");
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::malformed);
  return read.error().message;
}

} // namespace

TEST_SUITE("tools/flight/merge") {
  TEST_CASE("the record that a job writes is read again") {
    auto task = record("worker:0", 1, actor_doing::computing, 7, 12500ms);
    CHECK(task.task == "worker:0");
    CHECK(task.reason == "SIGUSR1");
    CHECK(task.seconds == 20.0);
    REQUIRE(task.actors.size() == 1);
    CHECK(task.actors[0].state == "computing");
    CHECK(task.actors[0].since == 12.5);
    CHECK(task.actors[0].step == 7U);
    REQUIRE(task.messages.size() == 1);
    CHECK(task.messages[0].message == "Token");
  }

  TEST_CASE("the replica that computes while others wait fell behind") {
    std::vector tasks{record("worker:0", 0, actor_doing::waiting, 7, 18s),
                      record("worker:1", 1, actor_doing::computing, 7, 15s)};
    CHECK(flight_findings(tasks)
          == std::vector<std::string>{"worker:1 fell behind: replica 1 has been computing for "
                                      "5.00 s, at step 7; the furthest replica is at step 7"});
  }

  TEST_CASE("the replica with the oldest step fell behind, though others compute, too") {
    std::vector tasks{record("worker:0", 0, actor_doing::computing, 9, 11s),
                      record("worker:1", 1, actor_doing::computing, 4, 15s)};
    CHECK(flight_findings(tasks).front().starts_with("worker:1 fell behind: replica 1"));
  }

  TEST_CASE("a replica that waits and has not said its step did not fall behind") {
    auto silent = record("worker:2", 2, actor_doing::waiting, 3, 15s);
    silent.actors.front().step.reset();
    std::vector tasks{record("worker:0", 0, actor_doing::computing, 9, 11s), silent,
                      record("worker:1", 1, actor_doing::computing, 9, 15s)};
    CHECK(flight_findings(tasks) == std::vector<std::string>{"no task fell behind"});
    tasks[1].actors.front().state = "computing";
    CHECK(flight_findings(tasks) == std::vector<std::string>{"no task fell behind"}); // came late
  }

  TEST_CASE("a replica without a token is at its first step, if no message is older") {
    auto started = record("worker:1", 1, actor_doing::computing, 3, 1s);
    started.actors.front().step.reset();
    started.messages.clear();
    std::vector tasks{record("worker:0", 0, actor_doing::waiting, 1, 11s), started};
    CHECK(flight_findings(tasks)
          == std::vector<std::string>{"worker:1 fell behind: replica 1 has been computing for "
                                      "19.0 s, at its first step; the furthest replica is at "
                                      "step 1"});
  }

  TEST_CASE("a replica with messages that are not known is at no step that is made up") {
    actor_sight actor{.name = "replica 1",
                      .actor = 4,
                      .doing = actor_doing::computing,
                      .since = 2s,
                      .handled = 9,
                      .messages = {{.when = 2s}}};
    auto lines = flight_lines({.task = "worker:1", .is_lost = true, .seen = 7s, .actors = {actor}},
                              "a replica is lost");
    auto lost = read_flight_task(lines, "lost");
    REQUIRE(lost);
    CHECK(lost->actors[0].handled == 9);
    CHECK(lost->actors[0].listed == 1);
    std::vector tasks{record("worker:0", 0, actor_doing::computing, 9, 1s), *lost};
    CHECK(flight_findings(tasks)
          == std::vector<std::string>{
            "worker:1 is lost; it reported last at 7.000 s",
            "worker:1: replica 1 has been computing for 5.00 s, at a step that is not known",
            "none of the other replicas fell behind"});
    tasks[1].actors[0].handled = 1; // all are listed: it has had no token
    CHECK(flight_findings(tasks).back() == "no task fell behind");
  }

  TEST_CASE("no task fell behind where all replicas compute the same step") {
    std::vector tasks{record("worker:0", 0, actor_doing::computing, 9, 11s),
                      record("worker:1", 1, actor_doing::computing, 9, 15s)};
    CHECK(flight_findings(tasks) == std::vector<std::string>{"no task fell behind"});
  }

  TEST_CASE("a task that did not answer is named, and so is one that is lost") {
    auto silent = read_flight_task(silent_flight_line("worker:2", "SIGUSR1"), "silent");
    auto lost = read_flight_task(
      flight_lines({.task = "worker:3", .is_lost = true, .seen = 3s}, "SIGUSR1"), "lost");
    REQUIRE(silent);
    REQUIRE(lost);
    CHECK(flight_findings(std::vector{*silent, *lost})
          == std::vector<std::string>{"worker:2 did not answer",
                                      "worker:3 is lost; it reported last at 3.000 s"});
  }

  TEST_CASE("messages of all tasks are sorted by time, and the last are shown") {
    std::vector tasks{record("worker:0", 0, actor_doing::waiting, 7, 18s),
                      record("worker:1", 1, actor_doing::computing, 7, 15s),
                      record("worker:2", 2, actor_doing::waiting, 7, 14s)};
    auto page = flight_page(tasks, 2);
    CHECK(page.find("the last 2 of 3 messages\n") != std::string::npos);
    auto first = page.find("     15.000000  worker:1  replica 1  Token");
    auto second = page.find("     18.000000  worker:0  replica 0  Token");
    CHECK(first < second);
    CHECK(second != std::string::npos);
    CHECK(page.find("worker:2") == std::string::npos);
    CHECK(flight_page(tasks, 0).find("seconds") == std::string::npos);
  }

  TEST_CASE("a file with a line that is none is refused, with its number") {
    auto head = silent_flight_line("worker:2", "SIGUSR1");
    CHECK(refusal_of("") == "a.jsonl: an empty flight record");
    CHECK(refusal_of("x\n") == "a.jsonl:1: not a line of a flight record");
    for (const auto* line : {"[]", "7", "{}", "{\"actor\":5,\"state\":\"waiting\"}",
                             "{\"seconds\":1,\"actor\":\"unheard of\"}", "{\"task\":\"\"}", ""})
      CHECK(refusal_of(head + line + "\n") == "a.jsonl:2: not a line of a flight record");
  }

  TEST_CASE("texts of a file cannot write to the terminal") {
    auto read = read_flight_task("{\"task\":\"a\\u001b[2J\"}", "a.jsonl");
    REQUIRE(read);
    CHECK(read->task == "a?[2J");
  }
}

} // namespace flight_merge_test
