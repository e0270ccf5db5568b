// SPDX-License-Identifier: Apache-2.0
// Goal: where training is asynchronous, and gradients wait for several steps, each of them counts
// once, whichever owner is lost. Method: as in failover_client_test.cpp; an owner that answers when
// the test wants it to shows what is not certain yet.
#include "tests/actors/replicated_job.hpp"

namespace failover_client_asynchronous_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Two gradients make an update, whichever replicas gave them.
struct batch_job : replicated_job {
  batch_job() : replicated_job(asynchronous_rule{sync_policy::k_batch_async, 2}) {}

  push_answer give(uint32_t replica, uint64_t iteration, float value, uint64_t local_step = 0) {
    return push_of({.replica = replica, .local_step = local_step, .iteration = iteration}, value);
  }

  uint32_t waiting() { return waiting_at(closer); }

  // The replicas and iterations of the gradients of the last step that the chief was told of.
  std::vector<gradient_id> last_reported() {
    std::vector<gradient_id> ids;
    auto reports = chief.heard<wire::TakenGradient>();
    for (const auto& one : read_arrivals(reports.back().reader().getAccepted()))
      ids.push_back({one.from.replica, one.from.iteration});
    return ids;
  }
};

/// Each gradient is an update, and the first owner says when it has made it.
struct slow_job : replicated_job {
  slow_job() : replicated_job(asynchronous_rule{sync_policy::ssp, 1}) {
    slow = world.system().spawn([asked = asked](caf::event_based_actor* self) -> caf::behavior {
      return {[self, asked](const msg<wire::ApplyUpdate>&) {
        *asked = self->make_response_promise<promise>();
        return *asked;
      }};
    });
    first
      = spawn(accumulator, accumulator_config{.variable = form,
                                              .owner = caf::actor_cast<variable_owner_actor>(slow),
                                              .world = &world,
                                              .asynchronous = rule,
                                              .owner_is_replicated = true});
    gives = speaker_of_first(false);
    takes = speaker_of_first(true);
    settle();
    taken = chief.ask<msg<wire::UpdateApplied>>(takes, make_take_gradient(1));
    given = give(10);
    settle();
  }

  ~slow_job() {
    *asked = {};
    for (const auto& actor :
         {slow, caf::actor_cast<caf::actor>(first), caf::actor_cast<caf::actor>(gives),
          caf::actor_cast<caf::actor>(takes)})
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    settle();
  }

  failover_client_actor speaker_of_first(bool closes_steps) {
    auto found = [this](const std::function<void(const caf::strong_actor_ptr&)>& tell) {
      tell(caf::actor_cast<caf::strong_actor_ptr>(first));
      return true;
    };
    return spawn(failover_client,
                 failover_client_config{.name = "w",
                                        .owners = {search(owners, 0), search(owners, 1)},
                                        .accumulators = {found, search(accumulators, 1)},
                                        .directory = known,
                                        .closes_steps = closes_steps,
                                        .asynchronous = rule});
  }

  push_answer give(float value, uint64_t iteration = 0) {
    origin from{.replica = 0, .iteration = iteration};
    return trainer.ask<msg<wire::PushReply>>(gives, make_push_gradient(from, array({1}, {value})));
  }

  // A gradient that `first` does not answer, for it is lost.
  push_answer give_late() {
    caf::anon_send_exit(first, caf::exit_reason::kill);
    settle();
    auto late = give(5, 1);
    settle();
    CHECK_FALSE(late.has_come());
    return late;
  }

  uint32_t waiting() { return waiting_at(takes); }

  void take_over(const std::optional<closed_step>& closed = {}) {
    for (const auto& speaks : {gives, takes}) {
      trainer.tell(speaks, make_took_over(1, closed));
      settle();
    }
  }

  using promise = caf::typed_response_promise<msg<wire::UpdateApplied>>;

  std::shared_ptr<promise> asked = std::make_shared<promise>();
  caf::actor slow;
  accumulator_actor first;
  failover_client_actor gives;
  failover_client_actor takes;
  take_answer taken;
  push_answer given;
};

} // namespace

TEST_SUITE("actors/replication/failover_client_asynchronous") {
  TEST_CASE_FIXTURE(batch_job, "gradients that wait for several steps are given again, each once") {
    auto first = take(2);
    give(0, 0, 10);
    give(1, 0, 20);
    for (uint64_t iteration : {1, 2})
      give(0, iteration, static_cast<float>(iteration));
    give(1, 1, 3);
    settle();
    CHECK(first.value().reader().getVersion() == 1);
    CHECK(waiting() == 3);
    lose(0);
    CHECK(waiting() == 3);
    auto second = take(2);
    settle();
    auto third = take(2);
    give(2, 0, 4);
    settle();
    CHECK(second.value().reader().getVersion() == 2);
    CHECK(third.value().reader().getVersion() == 3);
    CHECK(value() == doctest::Approx(80));
    CHECK(waiting() == 0);
    CHECK(chief.heard<wire::TakenGradient>().size() == 3);
  }

  TEST_CASE_FIXTURE(batch_job, "the same holds when the two are lost, and come back, in turn") {
    double left = 100;
    uint64_t iteration = 0;
    for (size_t lost : {0, 1, 0, 1, 1, 0}) {
      auto taken = take(2);
      for (uint32_t replica = 0; replica < 3; ++replica)
        give(replica, iteration, 2, iteration);
      settle();
      CHECK(taken.has_come());
      lose(lost);
      return_to(lost);
      returns_told();
      ++iteration;
      left -= 2;
      CHECK(value() == doctest::Approx(left));
      CHECK(waiting() == iteration);
    }
    for (uint64_t i = 0; i < 3; ++i) {
      auto taken = take(2);
      settle();
      CHECK(taken.has_come());
      left -= 2;
    }
    CHECK(value() == doctest::Approx(left));
    CHECK(waiting() == 0);
  }

  TEST_CASE_FIXTURE(batch_job, "a replica's gradients stay in order, accepted before or not") {
    give(0, 0, 1);
    settle();
    caf::anon_send_exit(accumulators[0], caf::exit_reason::kill);
    settle();
    auto early = give(0, 1, 2);
    settle();
    CHECK_FALSE(early.has_come());
    lose(0);
    CHECK(is_accepted(early));
    auto taken = take(1);
    settle();
    CHECK(taken.has_come());
    CHECK(last_reported() == std::vector<gradient_id>{{0, 0}});
  }

  TEST_CASE_FIXTURE(batch_job, "a token does not forget what others have come before meanwhile") {
    give(0, 0, 1);
    give(1, 0, 2);
    give(1, 1, 3);
    settle();
    *has_come[1] = false;
    lose(0); // replica 0 was promised step 1; now it may be behind the others
    give(0, 1, 4, 7);
    settle();
    trainer.tell(replicas[0], make_took_over(3, std::nullopt)); // it moved on before it had come
    settle();
    *has_come[1] = true;
    pass(1s);
    CHECK(waiting() == 4);
  }

  TEST_CASE_FIXTURE(slow_job,
                    "the chief is told of a step when all that hold the variable have it") {
    CHECK(is_accepted(given));
    auto status = chief.ask<msg<wire::AccumulatorStatus>>(takes, make_read_accumulator());
    settle();
    CHECK(chief.heard<wire::TakenGradient>().empty());
    CHECK_FALSE(status.has_come());
    asked->deliver(make_update_applied({.version = 1}));
    settle();
    CHECK(taken.has_come());
    CHECK(chief.heard<wire::TakenGradient>().size() == 1);
    CHECK(status.value().reader().getStep() == 1);
  }

  TEST_CASE_FIXTURE(slow_job, "if a mirror takes over before, its step counts, and no other") {
    auto status = chief.ask<msg<wire::AccumulatorStatus>>(takes, make_read_accumulator());
    trainer.ask<msg<wire::TookOver>>(owners[1], make_take_over(1)); // clients do not know it yet
    settle();
    origin another{.replica = 1};
    trainer.tell(accumulators[1], make_push_gradient(another, array({1}, {50})));
    settle();
    take_over();
    CHECK(taken.value().reader().getVersion() == 1);
    auto reports = chief.heard<wire::TakenGradient>();
    REQUIRE(reports.size() == 1);
    auto accepted = read_arrivals(reports[0].reader().getAccepted());
    REQUIRE(accepted.size() == 1);
    CHECK(accepted[0].from.replica == 1);
    CHECK(status.value().reader().getStep() == 1);
    CHECK(status.value().reader().getAccumulated() == 1);
  }

  TEST_CASE_FIXTURE(slow_job, "a step that the mirror knows is told, and answered, once") {
    arrival came{{.replica = 0}, {}, 0};
    take_over(closed_step{.accepted = {came}, .applied = {.version = 1}, .latest = {{0, 0}}});
    CHECK(taken.value().reader().getVersion() == 1);
    CHECK(chief.heard<wire::TakenGradient>().size() == 1);
    CHECK(waiting() == 0);
  }

  TEST_CASE_FIXTURE(slow_job, "a gradient that was not answered is given again") {
    auto late = give_late();
    arrival came{{.replica = 0}, {}, 0};
    take_over(closed_step{.accepted = {came}, .latest = {{0, 0}}});
    CHECK(is_accepted(late));
    CHECK(waiting() == 1);
  }

  TEST_CASE_FIXTURE(slow_job,
                    "a gradient that was not answered is not given again if the mirror has it") {
    auto late = give_late();
    arrival came{{.replica = 0, .iteration = 1}, {}, 1};
    take_over(closed_step{.step = 1, .accepted = {came}, .latest = {{0, 1}}});
    CHECK(is_accepted(late));
    CHECK(late.value().reader().getNextStep() == 2);
    CHECK(waiting() == 0);
  }
}

} // namespace failover_client_asynchronous_test
