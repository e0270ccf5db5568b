// SPDX-License-Identifier: Apache-2.0
// Goal: an actor that fails begins anew under the same handle, each question is answered once, and
// a supervisor that gives up says why. Method: actors in a virtual world that fail when they are
// told.
#include "actors/groups/group.hpp"
#include "actors/supervision/supervisor.hpp"
#include "messages/errors/failure.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <stdexcept>

namespace supervisor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Counts what it is told to add, and answers the sum; 13 throws, and 0 is never answered.
using counter_actor = caf::typed_actor<caf::replies_to<int>::with<int>>;

struct counter_state {
  static inline const char* name = "counter";
  int sum = 0;
};

counter_actor::behavior_type count(observed_pointer<counter_actor, counter_state> self,
                                   const child_start& start) {
  if (auto kept = start.state->kept(); kept.has_value()) self->state.sum = std::any_cast<int>(kept);
  return {[self, state = start.state](int number) {
    auto promise = self->make_response_promise<int>();
    if (number == 13) throw std::runtime_error{"13 is bad luck"};
    if (number == 0) return promise;
    self->state.sum += number;
    state->keep(self->state.sum);
    promise.deliver(self->state.sum);
    return promise;
  }};
}

/// A supervisor of counters, and what it says.
struct supervised_counters : deterministic_world {
  explicit supervised_counters(restart_options restart = {})
    : boss(std::make_unique<supervisor>(
      world, "counters",
      supervisor_options{.restart = restart,
                         .on_warning = [this](const auto& line) { lines.push_back(line); },
                         .on_give_up = [this](const error& why) { given_up = why; }})) {}

  ~supervised_counters() {
    boss.reset();
    settle(); // before what its functions refer to ends
  }

  counter_actor add(const std::string& name) {
    return boss->add<counter_actor>(name, [this, name](const child_start& start) {
      starts.push_back(name + " " + std::to_string(start.restarts));
      return world.system().spawn(count, start);
    });
  }

  /// The answer to `number`, which has to come in no time.
  expected<int> told(const counter_actor& to, int number) {
    auto asked = asker.ask<int>(to, number);
    settle();
    if (!asked.has_come()) return fail(errc::stalled, "no answer");
    return asked.result();
  }

  puppet asker{world};
  std::vector<std::string> lines;
  std::vector<std::string> starts;
  std::optional<error> given_up;
  std::unique_ptr<supervisor> boss;
};

} // namespace

TEST_SUITE("actors/supervision/supervisor") {
  TEST_CASE("an actor that has thrown begins anew, behind the same handle") {
    supervised_counters stage;
    auto counter = stage.add("counter 0");
    CHECK(stage.told(counter, 2) == 2);
    CHECK(stage.told(counter, 13).error().code == errc::unavailable);
    stage.pass(200ms);
    CHECK(stage.starts == std::vector<std::string>{"counter 0 0", "counter 0 1"});
    CHECK(stage.told(counter, 3) == 5); // the sum was handed over
    CHECK(stage.lines
          == std::vector<std::string>{
            "supervisor 'counters': counter 0 has failed and begins anew in 0.1 s: 13 is bad luck, "
            "while it handled 13"});
  }

  TEST_CASE("a question in the hands of an actor that fails is answered, with the reason") {
    supervised_counters stage;
    auto counter = stage.add("counter 0");
    stage.settle();
    auto unanswered = stage.asker.ask<int>(counter, 0);
    stage.settle();
    CHECK_FALSE(unanswered.has_come());
    static_cast<void>(stage.told(counter, 13));
    CHECK(unanswered.error().code == errc::unavailable);
    CHECK(unanswered.error().message
          == "counter 0 has failed and begins anew: 13 is bad luck, while it handled 13");
    CHECK(unanswered.error().throw_site.starts_with("actor 'counter'"));
  }

  TEST_CASE("a question to an actor that is not back yet is answered at once") {
    supervised_counters stage;
    auto counter = stage.add("counter 0");
    static_cast<void>(stage.told(counter, 13));
    CHECK(stage.told(counter, 1).error().code == errc::unavailable);
    stage.pass(200ms);
    CHECK(stage.told(counter, 1) == 1);
  }

  TEST_CASE("a supervisor gives up after too many failures, and tells why") {
    supervised_counters stage{{.restarts = 2, .within = 60s, .backoff = 1s}};
    auto counter = stage.add("counter 0");
    auto other = stage.add("counter 1");
    auto monitor = std::make_shared<std::optional<error>>();
    caf::anon_send(stage.asker.as<caf::actor>(), script{[=](caf::event_based_actor* self) {
                     self->monitor(counter);
                     self->set_down_handler(
                       [=](const caf::down_msg& down) { *monitor = from_caf(down.reason); });
                   }});
    for (int i = 0; i < 3; ++i) {
      CHECK_FALSE(*monitor);
      static_cast<void>(stage.told(counter, 13));
      stage.pass(3s);
    }
    error why{
      errc::unavailable,
      "supervisor 'counters' gives up: counter 0 has failed 3 times within 60.0 s, at last: "
      "13 is bad luck, while it handled 13"};
    CHECK(stage.given_up == why);
    CHECK(*monitor == why);
    CHECK(stage.told(counter, 1).error() == why);
    CHECK(stage.told(other, 1).error() == why);
  }

  TEST_CASE("actors that restart together all begin anew, when the last has ended") {
    supervised_counters stage{{.backoff = 1s, .together = true}};
    auto first = stage.add("counter 0");
    auto second = stage.add("counter 1");
    auto unanswered = stage.asker.ask<int>(second, 0);
    stage.settle();
    static_cast<void>(stage.told(first, 13));
    CHECK(unanswered.error().message
          == "counter 1 begins anew with counter 0, which has failed: 13 is bad luck, while it "
             "handled 13");
    stage.pass(2s);
    CHECK(stage.starts
          == std::vector<std::string>{"counter 0 0", "counter 1 0", "counter 0 1", "counter 1 1"});
    CHECK(stage.told(first, 1) == 1);
    CHECK(stage.told(second, 1) == 1);
  }

  TEST_CASE("siblings begin anew though the one that failed is stopped meanwhile") {
    supervised_counters stage{{.backoff = 1s, .together = true}};
    auto first = stage.add("counter 0");
    auto second = stage.add("counter 1");
    static_cast<void>(stage.told(first, 13));
    caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
    stage.settle();
    CHECK(stage.told(second, 1).error().code == errc::unavailable);
    stage.pass(2s);
    CHECK(stage.told(second, 1) == 1);
    CHECK(stage.told(first, 1).error() == error{errc::unavailable, "counter 0 has ended"});
  }

  TEST_CASE("a failure during a backoff has actors that restart together wait for its own") {
    supervised_counters stage{{.restarts = 5, .backoff = 1s, .together = true}};
    auto first = stage.add("counter 0");
    static_cast<void>(stage.told(first, 13)); // 1 s from now
    stage.pass(500ms);
    static_cast<void>(stage.told(stage.add("counter 1"), 13)); // 2 s from now
    stage.pass(1s);
    CHECK(stage.starts.size() == 2);
    stage.pass(1100ms);
    CHECK(stage.starts.size() == 4);
    CHECK(stage.told(first, 1) == 1);
  }

  TEST_CASE("actors that restart together count their failures together") {
    supervised_counters stage{{.restarts = 1, .backoff = 1s, .together = true}};
    auto first = stage.add("counter 0");
    auto second = stage.add("counter 1");
    static_cast<void>(stage.told(first, 13));
    stage.pass(2s);
    static_cast<void>(stage.told(second, 13));
    CHECK(stage.given_up.has_value());
  }

  TEST_CASE("an actor that is added to a supervisor that has given up ends") {
    supervised_counters stage{{.restarts = 0}};
    static_cast<void>(stage.told(stage.add("counter 0"), 13));
    REQUIRE(stage.given_up);
    auto alive = stage.actors_alive();
    auto late = stage.add("counter 1");
    stage.settle();
    CHECK(stage.actors_alive() == alive);
    CHECK(stage.told(late, 1).error()
          == error{errc::unavailable, "counter 1 has no supervisor any more"});
  }

  TEST_CASE("a function of the program that throws does not end the supervisor") {
    deterministic_world stage;
    puppet asker{stage.world};
    {
      supervisor boss{stage.world, "counters", {.on_warning = [](const auto&) {
                        throw std::runtime_error{"no log"};
                      }}};
      auto counter = boss.add<counter_actor>("counter 0", [&](const child_start& start) {
        return stage.world.system().spawn(count, start);
      });
      auto unanswered = asker.ask<int>(counter, 0);
      auto failed = asker.ask<int>(counter, 13);
      stage.settle();
      CHECK(unanswered.error().code == errc::unavailable);
      stage.pass(1s);
      auto answered = asker.ask<int>(counter, 1);
      stage.settle();
      CHECK(answered.value() == 1);
    }
    stage.settle();
  }

  TEST_CASE("an actor that ends as it should, or is told to exit, does not begin anew") {
    supervised_counters stage;
    auto counter = stage.add("counter 0");
    stage.settle();
    caf::anon_send_exit(counter, caf::exit_reason::user_shutdown);
    stage.pass(1s);
    CHECK(stage.starts.size() == 1);
    CHECK(stage.lines.empty());
    CHECK(stage.told(counter, 1).error() == error{errc::unavailable, "counter 0 has ended"});
  }

  TEST_CASE("an actor that cannot be made anew has failed again") {
    supervised_counters stage{{.restarts = 2, .backoff = 1s}};
    auto made = std::make_shared<int>(0);
    auto counter = stage.boss->add<counter_actor>("counter 0", [&](const child_start& start) {
      if (++*made == 2) throw std::runtime_error{"the file is gone"};
      return stage.world.system().spawn(count, start);
    });
    static_cast<void>(stage.told(counter, 13));
    stage.pass(1500ms);
    CHECK(stage.told(counter, 1).error().message
          == "counter 0 has failed and begins anew: the file is gone");
    stage.pass(3s);
    CHECK(stage.told(counter, 1) == 1);
    CHECK(*made == 3);
  }

  TEST_CASE("an actor that throws when it is first made throws to the caller of add") {
    supervised_counters stage;
    auto make = [](const child_start&) -> counter_actor { throw std::runtime_error{"no file"}; };
    CHECK_THROWS_WITH_AS(static_cast<void>(stage.boss->add<counter_actor>("counter 0", make)),
                         "no file", std::runtime_error);
  }

  TEST_CASE("a function that makes no actor is refused") {
    supervised_counters stage;
    auto make = [](const child_start&) { return counter_actor{}; };
    CHECK_THROWS_WITH_AS(static_cast<void>(stage.boss->add<counter_actor>("counter 0", make)),
                         "the function that makes counter 0 returned no actor", failure);
    CHECK_THROWS_WITH_AS(static_cast<void>(stage.boss->add<counter_actor>("counter 0", nullptr)),
                         "the function that makes counter 0 is empty", failure);
  }

  TEST_CASE("times that would void the limit on restarts are refused") {
    auto world = world::virtual_time();
    for (const auto& wrong :
         {restart_options{.within = 0s}, restart_options{.within = -1s},
          restart_options{.backoff = -5s}, restart_options{.backoff_max = -5s}}) {
      auto make = [&] { supervisor{world, "readers", {.restart = wrong}}; };
      CHECK_THROWS_AS(make(), failure);
    }
    CHECK_THROWS_WITH_AS((supervisor{world, "readers", {.restart = {.backoff = -5s}}}),
                         "supervisor 'readers' counts restarts within 60 s, and begins anew after "
                         "-5 to 10 s: give a time above 0, and backoffs of at least 0",
                         failure);
  }

  TEST_CASE("a group goes on asking a member that has begun anew") {
    supervised_counters stage;
    group counters{stage.world, "counter", std::vector{stage.add("0"), stage.add("1")}};
    CHECK(counters.ask<int>(1).wait().is_enough());
    auto failed = counters.ask_each<int>(std::vector{1, 13}).wait();
    CHECK(failed.counted().size() == 1);
    stage.pass(1s);
    CHECK(counters.ask<int>(1).wait().require() == std::vector{3, 2});
  }

  TEST_CASE("nothing is left when the supervisor ends") {
    supervised_counters stage;
    auto before = stage.actors_alive();
    auto counter = stage.add("counter 0");
    stage.settle();
    CHECK(stage.actors_alive() == before + 1);
    stage.boss.reset();
    stage.settle();
    CHECK(stage.actors_alive() == before - 1); // the supervisor is gone, too
    CHECK(stage.told(counter, 1).error().message == "supervisor 'counters' has ended");
  }
}

} // namespace supervisor_test
