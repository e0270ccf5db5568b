// SPDX-License-Identifier: Apache-2.0
// Goal: where messages may be lost or come twice, a question that is asked again counts once.
// Method: puppets that ask again, and a coroutine that gets no answer at first.
#include "actors/training/accumulator.hpp"
#include "actors/training/token_queue.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/hosted_coroutine.hpp"

namespace asking_again_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A token queue that remembers, and the replicas that ask it.
struct barrier : deterministic_world {
  explicit barrier(token_queue_config config = {.remembers = true, .watches = true})
    : queue(spawn(token_queue, std::move(config))) {}

  ~barrier() { caf::anon_send_exit(queue, caf::exit_reason::user_shutdown); }

  answer<msg<wire::Token>> take(uint32_t replica, uint64_t request) {
    auto result
      = replicas[replica].ask<msg<wire::Token>>(queue, make_take_token(replica, 0, 0, request));
    settle();
    return result;
  }

  void put(uint64_t step, uint32_t count) {
    chief.tell(queue, make_put_tokens(step, count));
    settle();
  }

  size_t tokens() {
    auto asked = chief.ask<msg<wire::QueueStatus>>(queue, make_read_queue_status());
    settle();
    return asked.value().reader().getTokens();
  }

  token_queue_actor queue;
  std::array<puppet, 2> replicas{puppet{world}, puppet{world}};
  puppet chief{world};
};

uint64_t step_of(const answer<msg<wire::Token>>& token) {
  return token.value().reader().getStep();
}

/// An accumulator that remembers.
struct collection : deterministic_world {
  ~collection() { caf::anon_send_exit(target, caf::exit_reason::user_shutdown); }

  wire::Verdict push(uint32_t replica, uint64_t local_step, uint64_t iteration) {
    auto message = make_push_gradient(
      {.replica = replica, .local_step = local_step, .iteration = iteration}, zeros({1}));
    auto result = asker.ask<msg<wire::PushReply>>(target, message);
    settle();
    return result.value().reader().getVerdict();
  }

  uint32_t accepted() {
    auto result = asker.ask<msg<wire::AccumulatorStatus>>(target, make_read_accumulator());
    settle();
    return result.value().reader().getAccumulated();
  }

  puppet owner{world};
  accumulator_actor target
    = spawn(accumulator, accumulator_config{.variable = {"w", dtype::f32, {1}},
                                            .owner = owner.as<variable_owner_actor>(),
                                            .world = &world,
                                            .remembers = true});
  puppet asker{world};
};

} // namespace

TEST_SUITE("actors/training/asking_again") {
  TEST_CASE("a gradient that comes twice counts once, and is answered alike") {
    collection step;
    CHECK(step.push(0, 0, 0) == wire::Verdict::ACCEPTED);
    CHECK(step.push(0, 0, 0) == wire::Verdict::ACCEPTED);
    CHECK(step.accepted() == 1);
    CHECK(step.push(1, 0, 0) == wire::Verdict::ACCEPTED);
    CHECK(step.push(0, 0, 1) == wire::Verdict::ACCEPTED); // of one step, but another gradient
    CHECK(step.accepted() == 3);
  }

  TEST_CASE("a gradient that was overtaken by a later one does not count") {
    collection step;
    CHECK(step.push(0, 0, 4) == wire::Verdict::ACCEPTED);
    CHECK(step.push(0, 0, 3) == wire::Verdict::STALE);
    CHECK(step.accepted() == 1);
  }

  TEST_CASE("a replica that asks again for a token gets the same one, and no second") {
    barrier barrier;
    barrier.put(3, 2);
    CHECK(step_of(barrier.take(0, 1)) == 3);
    barrier.put(4, 2);
    CHECK(step_of(barrier.take(0, 1)) == 3);
    CHECK(barrier.tokens() == 3);
    CHECK(step_of(barrier.take(0, 2)) == 3);
    CHECK(barrier.tokens() == 2);
  }

  TEST_CASE("a replica that asks again while it waits keeps its place, and is answered once") {
    barrier barrier;
    auto first = barrier.take(0, 1);
    auto other = barrier.take(1, 1);
    auto again = barrier.take(0, 1);
    barrier.put(5, 1);
    CHECK_FALSE(first.has_come());
    CHECK_FALSE(other.has_come());
    CHECK(step_of(again) == 5);
    barrier.put(6, 1);
    CHECK(step_of(other) == 6);
  }

  TEST_CASE("under ssp a replica that asks again while it is too far ahead is answered, too") {
    barrier barrier{{.policy = sync_policy::ssp, .replicas = 2, .remembers = true}};
    barrier.put(1, 2);
    auto first = barrier.take(0, 1);
    auto again = barrier.take(0, 1);
    auto slower = barrier.take(1, 1);
    CHECK_FALSE(first.has_come());
    CHECK(step_of(again) == 1);
    CHECK(step_of(slower) == 1);
  }

  TEST_CASE("a question that was overtaken by a later one is refused") {
    barrier barrier;
    barrier.put(3, 2);
    CHECK(step_of(barrier.take(0, 2)) == 3);
    CHECK(barrier.take(0, 1).error().code == errc::failed_precondition);
    CHECK(barrier.tokens() == 1);
  }

  TEST_CASE("a replica that is gone while it waits takes no token along") {
    barrier barrier;
    barrier.take(0, 1);
    caf::anon_send_exit(barrier.replicas[0].as<caf::actor>(), caf::exit_reason::user_shutdown);
    barrier.settle();
    barrier.put(3, 1);
    CHECK(barrier.tokens() == 1);
  }

  TEST_CASE("a coroutine that is told to asks again until it is answered") {
    std::vector<expected<msg<wire::Token>>> seen;
    token_queue_actor queue;
    hosted_coroutine hosted{[&](activity& activity) -> task<void> {
      queue = activity.world().system().spawn(token_queue, token_queue_config{.remembers = true});
      activity.set_ask_again_after(1s);
      auto asking = activity.request<msg<wire::Token>>(queue, make_take_token(0, 0, 0, 1));
      seen.push_back(co_await asking);
    }};
    hosted.pass(5500ms);
    CHECK(seen.empty());
    hosted.chief.tell(queue, make_put_tokens(3, 1));
    hosted.settle();
    REQUIRE(seen.size() == 1);
    CHECK(seen[0]->reader().getStep() == 3);
    caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
  }
}

} // namespace asking_again_test
