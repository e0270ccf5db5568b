// SPDX-License-Identifier: Apache-2.0
// Goal: replicas wait at the barrier and pass it in order. Method: a puppet asks for tokens,
// another one puts them.
#include "actors/training/token_queue.hpp"
#include "messages/mapped.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <functional>

namespace token_queue_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using token_answer = answer<msg<wire::Token>>;

/// A token queue, the replicas that ask it and the chief that fills it.
struct barrier : deterministic_world {
  explicit barrier(sync_policy policy = sync_policy::tensorflow, uint64_t first_step = 0)
    : queue(spawn(token_queue, token_queue_config{policy, first_step})) {}

  explicit barrier(const token_queue_config& config) : queue(spawn(token_queue, config)) {}

  ~barrier() { caf::anon_send_exit(queue, caf::exit_reason::user_shutdown); }

  token_answer take(uint32_t replica, uint64_t local_step, uint64_t not_before = 0) {
    auto result
      = replicas.ask<msg<wire::Token>>(queue, make_take_token(replica, local_step, not_before));
    settle();
    return result;
  }

  void put(uint64_t step, uint32_t count) {
    chief.tell(queue, make_put_tokens(step, count));
    settle();
  }

  void leave(uint32_t replica) {
    chief.tell(queue, make_farewell(replica, {errc::unavailable, ""}));
    settle();
  }

  void close() {
    chief.tell(queue, make_close_tokens());
    settle();
  }

  msg<wire::QueueStatus> status() {
    auto result = chief.ask<msg<wire::QueueStatus>>(queue, make_read_queue_status());
    settle();
    return result.value();
  }

  token_queue_actor queue;
  puppet replicas{world};
  puppet chief{world};
};

uint64_t step_of(const token_answer& token) {
  return token.value().reader().getStep();
}

std::vector<uint32_t> waiting(const msg<wire::QueueStatus>& status) {
  return mapped(status.reader().getWaiting(), std::identity{});
}

} // namespace

TEST_SUITE("actors/training/token_queue") {
  TEST_CASE("a token that is there is given at once") {
    barrier barrier;
    barrier.put(3, 1);
    CHECK(step_of(barrier.take(0, 0)) == 3);
  }

  TEST_CASE("a replica waits until there is a token") {
    barrier barrier;
    auto token = barrier.take(0, 0);
    CHECK_FALSE(token.has_come());
    barrier.put(1, 1);
    CHECK(step_of(token) == 1);
  }

  TEST_CASE("tokens and waiters are both served first come, first served") {
    barrier barrier;
    auto first = barrier.take(2, 0);
    auto second = barrier.take(0, 0);
    auto third = barrier.take(1, 0);
    barrier.put(1, 1);
    CHECK(step_of(first) == 1);
    CHECK_FALSE(second.has_come());
    barrier.put(2, 3);
    CHECK(step_of(second) == 2);
    CHECK(step_of(third) == 2);
    barrier.put(3, 1);
    CHECK(step_of(barrier.take(2, 1)) == 2);
    CHECK(step_of(barrier.take(0, 2)) == 3);
  }

  TEST_CASE("one replica may take several tokens under tensorflow") {
    barrier barrier;
    barrier.put(0, 2);
    CHECK(step_of(barrier.take(0, 0)) == 0);
    CHECK(step_of(barrier.take(0, 0)) == 0);
    CHECK_FALSE(barrier.take(0, 0).has_come());
  }

  TEST_CASE("leftover tokens stay in the queue under tensorflow, however old") {
    barrier barrier;
    barrier.put(1, 2);
    CHECK(step_of(barrier.take(0, 0)) == 1);
    barrier.put(2, 2);
    barrier.put(3, 2);
    CHECK(step_of(barrier.take(0, 3)) == 1);
    CHECK(step_of(barrier.take(0, 3)) == 2);
  }

  TEST_CASE("a replica that is late gets the newest token under the other policies") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      barrier barrier{policy};
      barrier.put(1, 2);
      barrier.put(2, 2);
      CHECK(step_of(barrier.take(0, 0)) == 2);
      CHECK(step_of(barrier.take(1, 1)) == 2);
      CHECK_FALSE(barrier.take(0, 2).has_come());
    }
  }

  TEST_CASE("a job that goes on makes replicas wait for the step after its first") {
    barrier barrier{sync_policy::latest_token, 40};
    auto token = barrier.take(0, 40);
    CHECK_FALSE(token.has_come());
    barrier.put(41, 1);
    CHECK(step_of(token) == 41);
  }

  TEST_CASE("replicas that are served together share one message") {
    barrier barrier;
    auto first = barrier.take(0, 0);
    auto second = barrier.take(1, 0);
    barrier.put(1, 3);
    CHECK(first.value() == second.value());
    CHECK(barrier.take(2, 0).value() == first.value());
  }

  TEST_CASE("closing tells all that wait, and all that ask later") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      barrier barrier{policy};
      auto first = barrier.take(0, 0);
      auto second = barrier.take(1, 0);
      barrier.close();
      for (const auto& token : {first, second, barrier.take(2, 0)}) {
        CHECK(token.error().code == errc::cancelled);
        CHECK(token.error().message == "the job is over");
      }
    }
  }

  TEST_CASE("tokens that are left when the queue is closed are not given out") {
    barrier barrier;
    barrier.put(1, 1);
    barrier.close();
    CHECK(barrier.take(0, 0).error().code == errc::cancelled);
  }

  TEST_CASE("the status names the replicas that wait, in the order of asking") {
    barrier barrier;
    for (uint32_t replica : {5, 1, 3})
      static_cast<void>(barrier.take(replica, 0));
    auto status = barrier.status();
    CHECK(waiting(status) == std::vector<uint32_t>{5, 1, 3});
    CHECK(status.reader().getTokens() == 0);
    CHECK(status.reader().getNextStep() == 0);
  }

  TEST_CASE("the status says how many tokens there are, and the next one's step") {
    barrier barrier;
    barrier.put(4, 2);
    barrier.put(5, 1);
    auto status = barrier.status();
    CHECK(waiting(status).empty());
    CHECK(status.reader().getTokens() == 3);
    CHECK(status.reader().getNextStep() == 4);
  }

  TEST_CASE("a request to a queue that is gone is told so") {
    barrier barrier;
    caf::anon_send_exit(barrier.queue, caf::exit_reason::user_shutdown);
    barrier.settle();
    CHECK(barrier.take(0, 0).error().code == errc::unavailable);
  }

  TEST_CASE("under k_async a token is for the step that a replica needs, or a later one") {
    barrier barrier{sync_policy::k_async, 4};
    CHECK(step_of(barrier.take(0, 2, 3)) == 4);
    auto late = barrier.take(1, 2, 6);
    barrier.put(5, 9);
    CHECK_FALSE(late.has_come());
    barrier.put(6, 9);
    CHECK(step_of(late) == 6);
  }

  TEST_CASE("under ssp a replica waits for the clock of the slowest, and for what that one gave") {
    barrier barrier{{.policy = sync_policy::ssp, .replicas = 2}};
    barrier.put(1, 9);
    auto fast = barrier.take(0, 0, 1);
    CHECK_FALSE(fast.has_come());
    CHECK(waiting(barrier.status()) == std::vector<uint32_t>{0});
    auto slow = barrier.take(1, 0, 2);
    CHECK_FALSE(fast.has_come());
    CHECK_FALSE(slow.has_come());
    barrier.put(2, 9);
    CHECK(step_of(fast) == 2);
    CHECK(step_of(slow) == 2);
  }

  TEST_CASE("under ssp no replica waits for one that is gone") {
    barrier barrier{{.policy = sync_policy::ssp, .replicas = 3}};
    barrier.put(1, 9);
    auto first = barrier.take(0, 0, 1);
    auto second = barrier.take(1, 0, 1);
    CHECK_FALSE(first.has_come());
    barrier.leave(2);
    CHECK(step_of(first) == 1);
    CHECK(step_of(second) == 1);
  }

  TEST_CASE("a replica that waits for a slower one is told when the job is over") {
    barrier barrier{{.policy = sync_policy::ssp, .replicas = 2}};
    auto fast = barrier.take(0, 0, 0);
    CHECK_FALSE(fast.has_come());
    barrier.close();
    CHECK(fast.error().code == errc::cancelled);
  }
}

} // namespace token_queue_test
