// SPDX-License-Identifier: Apache-2.0
// Goal: the chief's process sees the others, at a bounded rate, and names those that do not answer.
// Method: a task observer in a virtual world, and members that answer or do not, as the test says;
// once a member of another node.
#include "actors/training/member.hpp"
#include "actors/training/roll_call.hpp"
#include "actors/training/task_observer.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/actors/net/station.hpp"

#include <algorithm>

namespace task_observer_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A member that a test speaks for.
struct played_member {
  bool answers = true;
  std::vector<uint32_t> asked; ///< For so many messages of each actor.
  std::vector<caf::typed_response_promise<msg<wire::TaskReport>>> open;
};

msg<wire::TaskReport> report_of_a_replica() {
  return make_task_report({.clock = 5s, .actors = {{.name = "replica 1", .actor = 3}}});
}

caf::behavior play(caf::event_based_actor* self, std::shared_ptr<played_member> member) {
  return {[self, member](const msg<wire::ReadTask>& asked) -> caf::result<msg<wire::TaskReport>> {
    member->asked.push_back(asked.reader().getMessages());
    if (member->answers) return report_of_a_replica();
    auto promise = self->make_response_promise<msg<wire::TaskReport>>();
    member->open.push_back(promise);
    return promise;
  }};
}

template <class Handle>
void end(const Handle& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::kill);
}

struct watching : deterministic_world {
  watching() {
    task_observer_config config{.view = view, .period = 1s, .record_deadline = 5s, .world = &world};
    config.on_records = [this](const flight_records& all) { records.push_back(all); };
    observer = spawn(task_observer, std::move(config));
    for (uint32_t index : {1U, 2U}) {
      members[index] = std::make_shared<played_member>();
      actors[index] = spawn(play, members[index]);
      caf::anon_send(observer, observe_task{index, caf::actor_cast<member_actor>(actors[index])});
    }
    settle();
  }

  ~watching() {
    for (auto& [index, actor] : actors)
      end(actor);
    end(observer);
  }

  void kill(uint32_t index) {
    end(actors[index]);
    settle();
  }

  void collect() {
    caf::anon_send(observer, collect_flight_records{"a test"});
    settle();
  }

  std::shared_ptr<task_view> view = std::make_shared<task_view>(
    "chief:0", std::map<uint32_t, std::string>{{1, "worker:0"}, {2, "worker:1"}});
  std::map<uint32_t, std::shared_ptr<played_member>> members;
  std::map<uint32_t, caf::actor> actors;
  task_observer_actor observer;
  std::vector<flight_records> records;
};

} // namespace

TEST_SUITE("actors/training/task_observer") {
  TEST_CASE_FIXTURE(watching, "each process is asked at once, and then once a period") {
    CHECK(members[1]->asked == std::vector<uint32_t>{1});
    pass(3500ms);
    CHECK(members[1]->asked.size() == 4);
    auto shown = view->look();
    REQUIRE(shown[0].actors.size() == 1);
    CHECK(shown[0].actors[0].name == "replica 1");
    CHECK(shown[0].seen == job_time{3s});
  }

  TEST_CASE_FIXTURE(watching, "a process that does not answer is asked no more until it does") {
    members[1]->answers = false;
    pass(10500ms);
    CHECK(members[1]->asked.size() == 2);
    CHECK(members[2]->asked.size() == 11);
    CHECK(view->look()[0].seen == job_time{0s});
    members[1]->answers = true;
    members[1]->open[0].deliver(report_of_a_replica());
    pass(1s);
    CHECK(members[1]->asked.size() == 3);
    CHECK(view->look()[0].seen == job_time{11s});
  }

  TEST_CASE_FIXTURE(watching, "a process that is gone is lost, and asked again when it is back") {
    kill(1);
    CHECK(view->look()[0].is_lost);
    CHECK_FALSE(view->look()[1].is_lost);
    pass(3s);
    CHECK(members[1]->asked.size() == 1);
    actors[1] = spawn(play, members[1]);
    caf::anon_send(observer, observe_task{1, caf::actor_cast<member_actor>(actors[1])});
    settle();
    CHECK_FALSE(view->look()[0].is_lost);
    CHECK(members[1]->asked.size() == 2);
  }

  TEST_CASE_FIXTURE(watching, "flight records of all processes are collected") {
    collect();
    CHECK(members[1]->asked.back() == observation::messages_kept);
    REQUIRE(records.size() == 1);
    CHECK(records[0].reason == "a test");
    CHECK(records[0].tasks.size() == 2);
    CHECK(records[0].silent.empty());
  }

  TEST_CASE_FIXTURE(watching,
                    "a process without an answer in time is named, and one that is lost") {
    kill(2);
    members[1]->answers = false;
    collect();
    pass(4s);
    CHECK(records.empty());
    pass(2s);
    REQUIRE(records.size() == 1);
    CHECK(records[0].silent == std::vector<std::string>{"worker:1", "worker:0"});
    REQUIRE(records[0].tasks.size() == 1);
    CHECK(records[0].tasks[0].task == "worker:1");
    CHECK(records[0].tasks[0].is_lost);
  }

  TEST_CASE_FIXTURE(watching, "one collection is made at a time") {
    members[1]->answers = false;
    for (int i = 0; i < 3; ++i)
      collect();
    pass(6s);
    CHECK(records.size() == 1);
    collect();
    pass(6s);
    CHECK(records.size() == 2);
  }

  TEST_CASE("a process that has entered the job is seen over its link") {
    station chief{options_of(0)};
    station worker{options_of(1, chief.network->listening_at())};
    news<flight_records> collected;
    task_observer_config config{.view = std::make_shared<task_view>(
                                  "chief", std::map<uint32_t, std::string>{{1, "worker:0"}}),
                                .world = &chief.world};
    config.on_records = [&](const flight_records& all) { collected.tell(all); };
    auto observer = chief.world.system().spawn(task_observer, config);
    roll_call_config entrance{.members = {{1, "worker:0"}}, .world = &chief.world};
    entrance.on_here = [observer](uint32_t member, const member_actor& who) {
      caf::anon_send(observer, observe_task{member, who});
      caf::anon_send(observer, collect_flight_records{"it is here"});
    };
    entrance.on_entered = [](auto) {};
    entrance.on_left = [](auto) {};
    auto roll = chief.world.system().spawn(roll_call, entrance);
    chief.network->here()->publish("roll call", caf::actor_cast<caf::strong_actor_ptr>(roll));
    member_config enters{.roll = caf::actor_cast<roll_call_actor>(worker.find(0, "roll call")),
                         .entrance = {.member = 1},
                         .observed = &worker.world.observatory()};
    enters.on_begin = [](auto) {};
    enters.on_end = [](auto) {};
    enters.on_left = [](auto) {};
    auto entered = worker.world.system().spawn(member, enters);
    worker.world.introduce(entered.id(), "member 1");
    auto all = collected.wait();
    CHECK(all.reason == "it is here");
    REQUIRE(all.tasks.size() == 1);
    CHECK(all.tasks[0].task == "worker:0");
    CHECK(all.tasks[0].process.resident_bytes > 0);
    auto names = [](const actor_sight& actor) { return actor.name; };
    CHECK(std::ranges::count(all.tasks[0].actors, "member 1", names) == 1);
    end(entered);
    end(roll);
    end(observer);
  }
}

} // namespace task_observer_test
