// SPDX-License-Identifier: Apache-2.0
// Goal: a caller that is told of a failure, or waits, is told the same by the gauge that it looks
// at, and a closure that goes to another worker takes that one's values. Method: a coordinator in a
// virtual world, and puppets for its workers.
#include "actors/coordinator/coordinator.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/replication_message.hpp"
#include "tests/actors/deterministic_world.hpp"
#include "tests/actors/lose_node.hpp"
#include "tests/taken_output.hpp"

#include <array>
#include <stdexcept>
#include <variant>

namespace coordinator_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using results = expected<std::vector<closure_value>>;

/// A worker that keeps what it is asked until the test has it answer.
class played_worker {
public:
  explicit played_worker(troupe::world& world)
    : actor_(world.system().spawn([asked = asked_](caf::event_based_actor* self) -> caf::behavior {
        return {[self, asked](const msg<wire::RunClosure>& call) {
                  asked->push_back({call, self->make_response_promise<msg<wire::ClosureDone>>()});
                  return asked->back().answer;
                },
                [](const msg<wire::CancelClosure>&) {}, // nothing stops what it does
                [self](const script& script) { script.act(self); }};
      })) {}

  played_worker(const played_worker&) = delete;
  played_worker& operator=(const played_worker&) = delete;

  ~played_worker() { leave(); }

  void leave() { caf::anon_send_exit(actor_, caf::exit_reason::kill); }

  void enter(const coordinator_actor& at, uint32_t index) {
    caf::anon_send(actor_, script{[at, index](caf::event_based_actor* self) {
                     self->send(at, make_worker_ready(index));
                   }});
  }

  [[nodiscard]] size_t calls() const { return asked_->size(); }

  /// The last call's first argument.
  [[nodiscard]] int64_t argument() const {
    auto given = read_arguments(asked_->back().call);
    REQUIRE(given.size() == 1);
    return std::get<int64_t>(given[0]);
  }

  void return_nothing() { answer(make_closure_done(number(), {})); }

  void fail(const error& why) { answer(make_closure_failed(number(), why)); }

  /// As its node does for it, if what it has said does not travel.
  void answer_nothing(const error& why) { asked_->back().answer.deliver(to_caf(why)); }

private:
  struct call {
    msg<wire::RunClosure> call;
    caf::typed_response_promise<msg<wire::ClosureDone>> answer;
  };

  [[nodiscard]] uint64_t number() const { return asked_->back().call.reader().getClosure(); }

  void answer(const msg<wire::ClosureDone>& with) { asked_->back().answer.deliver(with); }

  std::shared_ptr<std::vector<call>> asked_ = std::make_shared<std::vector<call>>();
  caf::actor actor_;
};

struct coordinated : deterministic_world {
  explicit coordinated(uint32_t bystanders = 0) {
    config.workers = 2;
    config.bystanders = bystanders;
    config.on_warning = [told = told](const std::string& line) { told->push_back(line); };
    gives = spawn(coordinator, config);
    workers[0].enter(gives, 0);
    settle();
  }

  ~coordinated() {
    caf::anon_send_exit(gives, caf::exit_reason::kill);
    settle();
  }

  // @param settled Called with what became of it.
  void schedule(std::function<void(const results&)> settled, closure_argument argument = {}) {
    ++config.gauge->taken;
    schedule_closure closure{.function = "f", .arguments = {std::move(argument)}};
    closure.settle = [settled = std::move(settled)](const results& how) { settled(how); };
    trainer.tell(gives, closure);
    settle();
  }

  std::shared_ptr<std::vector<std::string>> told = std::make_shared<std::vector<std::string>>();
  puppet trainer{world};
  std::array<played_worker, 2> workers{played_worker{world}, played_worker{world}};
  coordinator_config config;
  coordinator_actor gives;
};

} // namespace

TEST_SUITE("actors/coordinator/coordinator") {
  TEST_CASE_FIXTURE(coordinated, "when a failure is told the gauge says that there is one") {
    auto told = false;
    schedule([&](const results& how) {
      told = true;
      CHECK(how.error().message == "'f' failed at worker 0: no");
      CHECK(config.gauge->has_failed);
    });
    workers[0].fail({errc::user_code, "no"});
    settle();
    CHECK(told);
  }

  TEST_CASE_FIXTURE(coordinated, "a closure that does not travel fails, and its worker goes on") {
    std::vector<std::string> settled;
    auto keep = [&](const results& how) { settled.push_back(how ? "done" : how.error().message); };
    schedule(keep);
    workers[0].answer_nothing({errc::invalid_argument, "an array on a device has no frame"});
    settle();
    const std::string line = "'f' failed at worker 0: an array on a device has no frame";
    CHECK(settled == std::vector{line});
    CHECK(told->empty());
    await_closures who{.until_all_are_done = true};
    who.tell = [line](const expected<bool>& how) {
      CHECK(how.error().message == line);
      return true;
    };
    trainer.tell(gives, who);
    settle();
    schedule(keep);
    REQUIRE(workers[0].calls() == 2);
    workers[0].return_nothing();
    settle();
    CHECK(settled.back() == "done");
  }

  TEST_CASE_FIXTURE(coordinated, "the scheduler is told of owners, until the end") {
    trainer.tell(gives, make_owners_lost("ps:0 is gone: 'w' held by mirrors now"));
    trainer.tell(gives, make_owners_mirrored("held twice again: 'w'"));
    settle();
    CHECK(*told
          == std::vector<std::string>{"ps:0 is gone: 'w' held by mirrors now; the job goes on",
                                      "held twice again: 'w'"});
    schedule([](const results&) {});
    trainer.tell(gives, end_service{});
    trainer.tell(gives, make_owners_lost("ps:1 is gone"));
    trainer.tell(gives, make_owners_mirrored("held twice again: 'v'"));
    settle();
    CHECK(told->size() == 2);
  }

  TEST_CASE_FIXTURE(coordinated,
                    "a warning that no function takes, or that it throws at, is said") {
    auto said_with = [&](std::function<void(const std::string&)> on_warning) {
      taken_output output;
      config.on_warning = std::move(on_warning);
      auto other = spawn(coordinator, config);
      trainer.tell(other, make_owners_lost("ps:0 is gone"));
      auto is_answered = false;
      await_closures who{.until_all_are_done = true};
      who.tell = [&](const expected<bool>&) { return is_answered = true; };
      trainer.tell(other, who);
      settle();
      CHECK(is_answered);
      caf::anon_send_exit(other, caf::exit_reason::kill);
      settle();
      return output.said();
    };
    CHECK(said_with({}) == "ps:0 is gone; the job goes on\n");
    CHECK(said_with([](const std::string&) { throw std::runtime_error{"no log"}; })
          == "on_warning of a coordinator has thrown: no log\n");
  }

  TEST_CASE_FIXTURE(coordinated, "a closure that goes to another worker takes that one's values") {
    std::vector<std::vector<closure_value>> each{{int64_t{10}}, {int64_t{20}}};
    auto is_done = false;
    schedule([&](const results& how) { is_done = how.has_value(); }, each);
    CHECK(workers[0].argument() == 10);
    workers[0].leave();
    workers[1].enter(gives, 1);
    settle();
    REQUIRE(workers[1].calls() == 1);
    CHECK(workers[1].argument() == 20);
    workers[1].return_nothing();
    settle();
    CHECK(is_done);
  }

  TEST_CASE_FIXTURE(coordinated, "a lost worker's call is cancelled if another one has failed") {
    workers[1].enter(gives, 1);
    settle();
    std::vector<std::string> ends;
    auto keep = [&](const results& how) { ends.push_back(how ? "done" : how.error().message); };
    schedule(keep);
    schedule(keep);
    workers[0].fail({errc::user_code, "no"});
    settle();
    workers[1].leave();
    settle();
    CHECK(ends
          == std::vector<std::string>{"'f' failed at worker 0: no", closure_cancelled.message});
    REQUIRE(told->size() == 1);
    CHECK(told->front().starts_with("worker 1 is gone ("));
    CHECK(told->front().ends_with("); what it ran is cancelled"));
  }

  TEST_CASE_FIXTURE(coordinated,
                    "without an owner that held variables alone nothing runs, and all are told") {
    auto owner = world.system().spawn(
      [](caf::event_based_actor*) -> caf::behavior { return {[](give_up) {}}; });
    trainer.tell(gives, rely_on{caf::actor_cast<variable_owner_actor>(owner)});
    std::vector<std::string> told;
    auto keep = [&](const results& how) { told.push_back(how ? "done" : how.error().message); };
    auto wait = [&] {
      await_closures who{.until_all_are_done = true};
      who.tell = [&told](const expected<bool>& how) {
        told.push_back(how.error().message);
        return true;
      };
      trainer.tell(gives, who);
      settle();
    };
    schedule(keep);
    schedule(keep);
    workers[0].leave();
    settle();
    wait();
    CHECK(told.empty());
    lose_node(owner, {errc::unavailable, "ps:0 is gone"});
    settle();
    const std::string why = "ps:0 is gone; variables that no other process holds went with it";
    CHECK(told == std::vector{closure_cancelled.message, closure_cancelled.message, why});
    CHECK(config.gauge->has_failed);
    wait();
    CHECK(told.back() == why);
    workers[1].enter(gives, 1);
    settle();
    CHECK(workers[1].calls() == 0);
  }

  TEST_CASE_FIXTURE(coordinated,
                    "one of several waiters is told of a failure, the others wait on") {
    std::vector<std::string> told;
    auto wait = [&] {
      await_closures who{.until_all_are_done = true};
      who.tell = [&told](const expected<bool>& how) {
        told.push_back(how ? "all are done" : how.error().message);
        return true;
      };
      trainer.tell(gives, who);
    };
    schedule([](const results&) {});
    wait();
    wait();
    settle();
    CHECK(told.empty());
    workers[0].fail({errc::user_code, "no"});
    settle();
    CHECK(told == std::vector<std::string>{"'f' failed at worker 0: no", "all are done"});
    CHECK_FALSE(config.gauge->has_failed);
  }

  TEST_CASE("the gauge says whether a worker is to come, to begin or to return") {
    queue_gauge gauge;
    CHECK(gauge.awaited() == "a worker to come");
    gauge.taken = 1;
    CHECK(gauge.awaited() == "a worker to come, with 1 queued");
    gauge.come(2);
    CHECK(gauge.awaited() == "a worker to begin, with 1 queued");
    gauge.begin(2, "f");
    CHECK(gauge.awaited() == "worker 2 to return from 'f', with 1 more queued");
    gauge.taken = 0;
    gauge.end(2);
    CHECK(gauge.awaited() == "the coordinator to answer");
    gauge.lose(2);
    CHECK(gauge.awaited() == "a worker to come");
  }

  TEST_CASE("a process that comes again does not stand for one that has not come yet") {
    coordinated stage{2};
    auto ask = [&](uint32_t process) {
      return stage.trainer.ask<msg<wire::ServiceEnded>>(stage.gives,
                                                        make_await_service_end(process));
    };
    auto first_life = ask(0);
    auto next_life = ask(0);
    stage.trainer.tell(stage.gives, end_service{});
    stage.settle();
    CHECK_FALSE(next_life.has_come());
    auto other = ask(1);
    stage.settle();
    CHECK(next_life.has_come());
    CHECK(other.has_come());
  }
}

} // namespace coordinator_test
