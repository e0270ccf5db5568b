// SPDX-License-Identifier: Apache-2.0
// Goal: what other processes report is shown with its age, and no report can do harm. Method:
// reports of a made-up clock, made by an observatory, or such as no program of ours makes.
#include "actors/observing/task_view.hpp"
#include "tests/doctest.hpp"

#include <limits>

namespace task_view_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

// Replica 1 computes since 7 s of a clock that shows 10 s; its last message came at 6 s.
task_report one_replica() {
  seen_message token{.when = 6s, .kind = "Token", .sender = 9, .step = 4};
  actor_report replica{.name = "replica 1",
                       .actor = 5,
                       .doing = static_cast<uint8_t>(actor_doing::computing),
                       .since = 7s,
                       .handled = 3,
                       .messages = {token}};
  return {.clock = 10s, .resident_bytes = 4096, .cpu_seconds = 1.5, .actors = {replica}};
}

actor_sight only_actor(const task_report& report) {
  auto sight = sight_of(report, "worker:0", 30s);
  REQUIRE(sight.actors.size() == 1);
  return sight.actors.front();
}

} // namespace

TEST_SUITE("actors/observing/task_view") {
  TEST_CASE("a process tells of its actors, those that ended last") {
    observatory observed{[] { return job_time{8s}; }};
    auto* gone = observed.watch(1);
    auto* replica = observed.watch(2);
    observed.introduce(2, "replica 0");
    observed.retire(gone);
    replica->begin_message({.when = 3s, .kind = &message_kinds().front(), .sender = 1, .step = 2});
    replica->end_message();
    replica->begin_computing(4s);
    auto report = report_here(observed, 1);
    CHECK(report.clock == 8s);
    REQUIRE(report.actors.size() == 2);
    CHECK(report.actors[0].name == "replica 0");
    CHECK(report.actors[0].doing == static_cast<uint8_t>(actor_doing::computing));
    CHECK(report.actors[0].since == 4s);
    REQUIRE(report.actors[0].messages.size() == 1);
    CHECK(report.actors[0].messages[0].kind == message_kinds().front().name);
    CHECK(report.actors[1].doing == static_cast<uint8_t>(actor_doing::ended));
    CHECK(report.left_out == 0);
  }

  TEST_CASE("a report is bounded, however many actors there are, and says how many it leaves out") {
    observatory observed{[] { return job_time{0}; }};
    for (uint64_t actor = 1; actor <= reported_actors_max + 3; ++actor) {
      static_cast<void>(observed.watch(actor));
      observed.introduce(actor, std::string(1000, 'x'));
    }
    auto report = report_here(observed, 1000);
    CHECK(report.actors.size() == reported_actors_max);
    CHECK(report.left_out == 3);
    CHECK(report.actors[0].name.size() == reported_name_bytes_max);
    CHECK(make_task_report(report).reader().totalSize().wordCount * 8 < 64 * 1024);
  }

  TEST_CASE("times are shown on the observer's clock") {
    auto replica = only_actor(one_replica());
    CHECK(replica.name == "replica 1");
    CHECK(replica.doing == actor_doing::computing);
    CHECK(replica.since == 27s);
    REQUIRE(replica.last);
    CHECK(replica.last->when == 26s);
    CHECK(std::string{replica.last->kind->name} == "Token");
    CHECK(replica.last->step == 4);
  }

  TEST_CASE("nonsense becomes something that can be shown") {
    auto report = one_replica();
    auto& actor = report.actors[0];
    report.cpu_seconds = std::numeric_limits<double>::quiet_NaN();
    actor.name = "a\x1b[2J\xff" + std::string(1000, 'b');
    actor.doing = 200;
    actor.since = 11s; // after the report
    actor.timed_total = job_time::max();
    actor.messages[0].kind = "no such kind";
    actor.messages[0].when = job_time::min();
    actor.messages.resize(1000, actor.messages[0]);
    auto shown = only_actor(report);
    CHECK(sight_of(report, "worker:0", 30s).process.cpu_seconds == 0);
    CHECK(shown.name.size() == reported_name_bytes_max);
    CHECK(shown.name.starts_with("a?[2J?b"));
    CHECK(shown.doing == actor_doing::waiting);
    CHECK(shown.since == 30s);
    CHECK(shown.timed_total < 1e5h);
    CHECK(shown.messages.size() == observation::messages_kept);
    CHECK(shown.last->kind == nullptr);
    CHECK(shown.last->when == 20s);
    report.actors.resize(reported_actors_max + 9, actor);
    CHECK(sight_of(report, "worker:0", 30s).actors.size() == reported_actors_max);
  }

  TEST_CASE("no clock of a process makes ages that cannot be added up") {
    auto report = one_replica();
    report.clock = job_time::max();
    report.actors[0].since = 0s;
    CHECK(30s - only_actor(report).since < 1e5h);
    report.clock = job_time::min();
    CHECK(only_actor(report).since == 30s);
  }

  TEST_CASE("a process is shown with what it said last, and as lost until it is back") {
    task_view view{"chief:0 (10.0.0.1:22)", {{1, "worker:0 (10.0.0.2:22)"}, {2, "worker:1"}}};
    CHECK(view.here() == "chief:0");
    CHECK_FALSE(view.look()[0].seen);
    view.enter(1);
    view.fold(1, one_replica(), 30s);
    view.lose(1);
    auto shown = view.look();
    REQUIRE(shown.size() == 2);
    CHECK(shown[0].task == "worker:0");
    CHECK(shown[0].is_lost);
    CHECK(shown[0].seen == job_time{30s});
    CHECK(shown[0].actors.size() == 1);
    CHECK_FALSE(shown[1].is_lost);
    view.enter(1);
    CHECK_FALSE(view.look()[0].is_lost);
  }
}

} // namespace task_view_test
