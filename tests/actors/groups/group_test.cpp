// SPDX-License-Identifier: Apache-2.0
// Goal: a group asks all of its members, and says of each what became of its answer. Method:
// members in a virtual world that answer after chosen times, fail, end or keep silent.
#include "actors/groups/deputy.hpp"
#include "actors/groups/group.hpp"
#include "messages/mapped.hpp"
#include "tests/actors/groups/slow_member.hpp"
#include "tests/actors/hosted_coroutine.hpp"

#include <numeric>
#include <stdexcept>

namespace group_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using doublers = group<doubler_actor>;
using states = std::vector<member_status>;
using numbers = std::vector<int>;

constexpr auto counted = member_status::counted;
constexpr auto late = member_status::late;
constexpr auto failed = member_status::failed;
constexpr auto lost = member_status::lost;

states states_of(const group_report& report) {
  return mapped(report.members, [](const auto& one) { return one.state; });
}

/// Members that answer after so many seconds each.
struct slow_group : deterministic_world {
  explicit slow_group(const std::vector<std::chrono::seconds>& delays) {
    for (auto delay : delays)
      add(spawn(slow_doubler, delay, &told));
  }

  ~slow_group() {
    for (const auto& one : members)
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  }

  template <class Actor>
  void add(const Actor& one) {
    members.push_back(caf::actor_cast<doubler_actor>(one));
  }

  [[nodiscard]] doublers all() { return {world, "doubler", members}; }

  std::vector<doubler_actor> members;
  int told = 0;
};

} // namespace

TEST_SUITE("actors/groups/group") {
  TEST_CASE("all answers are given in the order of members, whichever came first") {
    slow_group stage{{3s, 1s, 2s}};
    auto all = stage.all();
    auto answers = all.ask<int>(21).wait();
    CHECK(answers.require() == numbers{42, 42, 42});
    CHECK(states_of(answers) == states{counted, counted, counted});
    CHECK(answers.members[0].took == 3s);
    CHECK(answers.members[1].took == 1s);
    CHECK(stage.world.now() == 3s);
    CHECK(answers.summary() == "group 'doubler': 3 answers of 3 wanted");
  }

  TEST_CASE("each member may be asked something else") {
    slow_group stage{{3s, 1s}};
    CHECK(stage.all().ask_each<int>(numbers{1, 2}).wait().require() == numbers{2, 4});
    CHECK_THROWS_WITH_AS(static_cast<void>(stage.all().ask_each<int>(numbers{1})),
                         "group 'doubler' has 2 members, and was given 1 messages", failure);
  }

  TEST_CASE("the first N answers are enough; later ones are dropped, and told of") {
    slow_group stage{{4s, 1s, 2s}};
    std::vector<std::pair<size_t, job_time>> told;
    auto all = stage.all();
    auto answers
      = all
          .ask<int>(
            3, {.first = 2,
                .on_late = [&](size_t member, job_time took) { told.emplace_back(member, took); }})
          .wait();
    CHECK(stage.world.now() == 2s);
    CHECK(states_of(answers) == states{late, counted, counted});
    CHECK(answers.require() == numbers{6, 6});
    CHECK(answers.summary() == "group 'doubler': 2 answers of 2 wanted; late: doubler 0");
    CHECK(answers.replies[0].error().code == errc::cancelled);
    CHECK(told.empty());
    stage.pass(5s);
    REQUIRE(told.size() == 1);
    CHECK(told[0] == std::pair<size_t, job_time>{0, 4s});
  }

  TEST_CASE("a question may await the late, which then have answers that do not count") {
    slow_group stage{{4s, 1s, 2s}};
    auto answers = stage.all().ask<int>(3, {.first = 1, .awaits_late = true}).wait();
    CHECK(stage.world.now() == 4s);
    CHECK(states_of(answers) == states{late, counted, late});
    CHECK(answers.require() == numbers{6});
    CHECK(answers.replies[0] == 6);
  }

  TEST_CASE("a late member is told that its answer is not needed, if one wishes") {
    slow_group stage{{4s, 1s, 2s}};
    auto all = stage.all();
    auto answers
      = all.ask<int>(3, {.first = 1, .cancel = doublers::cancel_by(std::string{"stop"})}).wait();
    stage.settle();
    CHECK(stage.told == 2);
    CHECK(states_of(answers) == states{late, counted, late});
  }

  TEST_CASE("members that have not answered in time are named") {
    slow_group stage{{4s, 1s, 9s}};
    auto answers = stage.all().ask<int>(3, {.limit = 2s}).wait();
    CHECK(stage.world.now() == 2s);
    CHECK(states_of(answers) == states{late, counted, late});
    CHECK(answers.counted() == numbers{6});
    CHECK_FALSE(answers.is_enough());
    CHECK_THROWS_WITH_AS(
      static_cast<void>(answers.require()),
      "group 'doubler': 1 answers of 3 wanted; late: doubler 0 (has not answered in 2.0 s), "
      "doubler 2 (has not answered in 2.0 s)",
      failure);
    CHECK(answers.why_not_enough().code == errc::deadline_exceeded);
  }

  TEST_CASE("each of several questions has its own limit") {
    slow_group stage{{5s}};
    std::vector<job_time> ends;
    auto all = stage.all();
    puppet asker{stage.world};
    for (auto limit : {job_time{4s}, job_time{1s}, job_time{30s}})
      caf::anon_send(asker.as<caf::actor>(), script{[&, all, limit](auto* self) {
                       auto asking = all.template ask<int>(1, {.limit = limit});
                       asking.then(self, [&](const auto& answers) {
                         REQUIRE(answers);
                         ends.push_back(stage.world.now());
                       });
                     }});
    stage.pass(40s);
    CHECK(ends == std::vector<job_time>{1s, 4s, 5s});
  }

  TEST_CASE("an error of a member is its own, and the others count") {
    slow_group stage{{1s}};
    stage.add(stage.spawn(failing_doubler));
    auto answers = stage.all().ask<int>(7).wait();
    CHECK(states_of(answers) == states{counted, failed});
    CHECK(answers.why_not_enough()
          == error{errc::invalid_argument,
                   "group 'doubler': 1 answers of 2 wanted; failed: doubler "
                   "1 (7 is not to be doubled)"});
    CHECK(stage.all().ask<int>(7, {.first = 1}).wait().is_enough());
  }

  TEST_CASE("a member that ends with the question in its hands is lost, at once") {
    slow_group stage{{1s}};
    stage.add(stage.spawn(silent_doubler));
    auto all = stage.all();
    caf::delayed_anon_send(caf::actor_cast<caf::actor>(stage.members[1]), 2s,
                           caf::exit_msg{nullptr, caf::exit_reason::user_shutdown});
    auto answers = all.ask<int>(7).wait();
    CHECK(stage.world.now() == 2s);
    CHECK(states_of(answers) == states{counted, lost});
    CHECK(answers.why_not_enough().code == errc::unavailable);
  }

  TEST_CASE("a member that has ended before is lost without a wait") {
    slow_group stage{{1s, 1s}};
    auto all = stage.all();
    caf::anon_send_exit(stage.members[0], caf::exit_reason::user_shutdown);
    stage.settle();
    auto answers = all.ask<int>(7, {.first = 2}).wait();
    CHECK(states_of(answers) == states{lost, counted});
    CHECK(stage.world.now() == 1s);
    stage.members.erase(stage.members.begin());
  }

  TEST_CASE("functions of the program that throw do not end a group") {
    slow_group stage{{1s, 2s}};
    auto all = stage.all();
    auto thrower = [](const auto&...) { throw std::runtime_error{"not today"}; };
    auto late = all.ask<int>(1, {.first = 1, .cancel = thrower, .on_late = thrower}).wait();
    CHECK(late.is_enough());
    stage.pass(3s);
    CHECK(all.ask<int>(1).wait().require() == numbers{2, 2});
  }

  TEST_CASE("looks at limits do not multiply") {
    slow_group stage{{1s}};
    auto all = stage.all();
    stage.add(stage.spawn(silent_doubler));
    group silent{stage.world, "silent", std::vector{stage.members[1]}};
    auto open = silent.stream<int>(1, {.limit = 1000s});
    for (int i = 0; i < 10; ++i)
      CHECK_FALSE(silent.ask<int>(1, {.limit = 1s}).wait().is_enough());
    auto before = stage.world.event_count();
    stage.pass(2000s);
    // The look at 1000 s, the last one at a limit that was met, and the clock of this test.
    CHECK(stage.world.event_count() - before < 10);
  }

  TEST_CASE("a coroutine holds no thread while a group answers") {
    numbers seen;
    std::vector<doubler_actor> members;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      for (auto delay : {2s, 1s})
        members.push_back(caf::actor_cast<doubler_actor>(
          activity.world().system().spawn(slow_doubler, delay, nullptr)));
      doublers all{activity.world(), "doubler", members};
      auto asking = all.ask<int>(4);
      auto answering = asking.by(activity);
      auto answers = co_await answering;
      seen = answers.require();
    }};
    CHECK(seen.empty());
    stage.pass(3s);
    CHECK(seen == numbers{8, 8});
    doublers{stage.world, "doubler", members}.end();
  }

  TEST_CASE("answers can be read as they come, until there are enough") {
    slow_group stage{{3s, 1s, 2s, 9s}};
    auto all = stage.all();
    auto answers = all.stream<int>(5, {.first = 3});
    std::vector<size_t> order;
    for (auto next = answers.next(); next; next = answers.next()) {
      CHECK(next->reply == 10);
      CHECK(next->report.took == stage.world.now());
      order.push_back(next->member);
    }
    CHECK(order == std::vector<size_t>{1, 2, 0});
    CHECK(stage.world.now() == 3s);
    CHECK_FALSE(answers.next());
  }

  TEST_CASE("a stream tells of members that fail or are lost, and ends at its limit") {
    slow_group stage{{9s}};
    stage.add(stage.spawn(failing_doubler));
    auto all = stage.all();
    auto answers = all.stream<int>(5, {.limit = 4s});
    auto first = answers.next();
    REQUIRE(first);
    CHECK(first->name == "doubler 1");
    CHECK(first->reply.error().code == errc::invalid_argument);
    CHECK_FALSE(answers.next());
    CHECK(stage.world.now() == 4s);
  }

  TEST_CASE("a slice asks its own members, by their names in the whole group") {
    slow_group stage{{1s, 2s, 3s, 4s}};
    doublers all{stage.world, "doubler", stage.members, group_shape{{{"host", 2}, {"device", 2}}}};
    auto second = all.at("device", 1);
    CHECK(second.size() == 2);
    CHECK(second.name_of(1) == "host 1 device 1");
    auto answers = second.ask<int>(1, {.first = 1}).wait();
    CHECK(stage.world.now() == 2s);
    CHECK(answers.summary() == "group 'doubler': 1 answers of 1 wanted; late: host 1 device 1");
    CHECK(all.slice("host", 1, 2).at("device", 0).name_of(0) == "host 1 device 0");
    CHECK(all.ask<int>(1, {.first = 2}).wait().summary()
          == "group 'doubler': 2 answers of 2 wanted; late: host 1 device 0, host 1 device 1");
  }

  TEST_CASE("a message without an answer goes to all members") {
    slow_group stage{{1s, 2s}};
    stage.all().tell(std::string{"stop"});
    stage.settle();
    CHECK(stage.told == 2);
  }

  TEST_CASE("a question is asked once, whether by itself or by a copy") {
    slow_group stage{{1s, 2s}};
    auto original = stage.all().ask<int>(1);
    auto question = original;
    CHECK(original.wait().is_enough());
    CHECK_THROWS_WITH_AS(
      static_cast<void>(question.wait()),
      "a question to group 'doubler' was asked before; call `ask` again for each question",
      failure);
  }

  TEST_CASE("a group that was moved from still means its members") {
    slow_group stage{{1s, 2s}};
    auto all = stage.all();
    auto others = std::move(all);
    CHECK(all.ask<int>(1).wait().is_enough()); // NOLINT(bugprone-use-after-move)
    CHECK(others.size() == 2);
  }

  TEST_CASE("groups and questions that cannot be are refused") {
    slow_group stage{{1s, 2s}};
    auto all = stage.all();
    CHECK_THROWS_WITH_AS(static_cast<void>(all.ask<int>(1, {.first = 3})),
                         "group 'doubler' cannot give the first 3 answers: it has 2 members",
                         failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(all.ask<int>(1, {.limit = 0s})),
                         "group 'doubler' needs a time limit above 0 and up to ten years", failure);
    CHECK_THROWS_WITH_AS((doublers{stage.world, "none", {}}),
                         "a group has no member: dimension 'none' is 0", failure);
    CHECK_THROWS_WITH_AS((doublers{stage.world, "x", {doubler_actor{}}}),
                         "group 'x' has an empty handle", failure);
    CHECK_THROWS_WITH_AS((doublers{stage.world, "x", stage.members, group_shape{{{"x", 3}}}}),
                         "group 'x' has 2 members, and a shape of 3", failure);
  }

  TEST_CASE("nothing of a group is left when its last copy is gone") {
    slow_group stage{{1s}};
    auto before = stage.actors_alive();
    {
      auto all = stage.all();
      auto slice = all.at("doubler", 0);
      stage.settle();
      CHECK(stage.actors_alive() == before + 1);
      static_cast<void>(slice.ask<int>(1).wait());
    }
    stage.settle();
    CHECK(stage.actors_alive() == before);
  }
}

TEST_SUITE("actors/groups/deputy") {
  TEST_CASE("a deputy answers for its group, with one answer made of all") {
    slow_group stage{{1s, 2s, 3s}};
    auto sum = [](const std::vector<int>& answers) -> expected<int> {
      return std::accumulate(answers.begin(), answers.end(), 0);
    };
    std::vector<deputy_actor<int, int>> hosts;
    for (int i = 0; i < 2; ++i)
      hosts.push_back(spawn_deputy<int, int>("host " + std::to_string(i), stage.all(), sum));
    group all{stage.world, "hosts", hosts};
    CHECK(all.ask<int>(1).wait().require() == numbers{6, 6});
    all.end();
    CHECK_THROWS_WITH_AS(
      (static_cast<void>(spawn_deputy<int, int>("host", stage.all(), sum, {.first = 4}))),
      "group 'doubler' cannot give the first 4 answers: it has 3 members", failure);
  }

  TEST_CASE("a deputy answers with what its combination throws") {
    slow_group stage{{1s}};
    auto refuses = [](const std::vector<int>&) -> expected<int> {
      throw failure{{errc::malformed, "no sum"}};
    };
    auto host = spawn_deputy<int, int>("host", stage.all(), refuses);
    for (int i = 0; i < 2; ++i)
      CHECK(ask<int>(stage.world, host, 1).error() == error{errc::malformed, "no sum"});
    caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
  }

  TEST_CASE("a deputy whose group has too few answers says so") {
    slow_group stage{{1s}};
    stage.add(stage.spawn(failing_doubler));
    auto host = spawn_deputy<int, int>(
      "host", stage.all(), [](const auto& answers) -> expected<int> { return answers[0]; });
    auto answer = ask<int>(stage.world, host, 1);
    CHECK(answer.error().message
          == "group 'doubler': 1 answers of 2 wanted; failed: doubler 1 (7 is not to be doubled)");
    caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
  }
}

} // namespace group_test
