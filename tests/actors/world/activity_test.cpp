// SPDX-License-Identifier: Apache-2.0
// Goal: a coroutine waits for replies, for computing and for time without holding a thread, and is
// not kept waiting for what is not wanted. Method: coroutines that write down what they see.
#include "actors/training/token_queue.hpp"
#include "actors/world/activity.hpp"
#include "tests/actors/hosted_coroutine.hpp"
#include "tests/actors/refusing_world.hpp"

#include <future>
#include <stdexcept>
#include <thread>

namespace activity_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

using token_reply = expected<msg<wire::Token>>;
using outcomes = std::vector<work_outcome>;

constexpr auto no_work = [](std::stop_token) {};

pace_function constant(job_time delay) {
  return [delay](uint64_t, job_time) { return delay; };
}

/// Computes `count` times in a row and keeps what came of it.
task<void> compute_times(activity& activity, int count, outcomes& seen) {
  for (int i = 0; i < count; ++i) {
    auto computing = activity.compute(no_work);
    seen.push_back(co_await computing);
  }
}

/// A replica's body that does that.
replica_body computing_times(int count, outcomes& seen) {
  return [count, &seen](activity& activity) { return compute_times(activity, count, seen); };
}

/// Asks every queue for a token at once.
task<void> ask_all(activity& activity, std::vector<token_queue_actor> queues,
                   std::vector<token_reply>& seen) {
  std::vector<std::pair<token_queue_actor, msg<wire::TakeToken>>> questions;
  for (const auto& queue : queues)
    questions.emplace_back(queue, make_take_token(0, 0));
  auto asking = activity.request_all<msg<wire::Token>>(std::move(questions));
  seen = co_await asking;
}

void end(const token_queue_actor& queue) {
  caf::anon_send_exit(queue, caf::exit_reason::user_shutdown);
}

token_queue_actor spawn_queue(world& world) {
  return world.system().spawn(token_queue, token_queue_config{});
}

} // namespace

TEST_SUITE("actors/world/activity") {
  TEST_CASE("a reply is waited for") {
    std::vector<token_reply> seen;
    token_queue_actor queue;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      queue = spawn_queue(activity.world());
      auto asking = activity.request<msg<wire::Token>>(queue, make_take_token(0, 0));
      seen.push_back(co_await asking);
    }};
    CHECK(seen.empty());
    stage.chief.tell(queue, make_put_tokens(3, 1));
    stage.settle();
    REQUIRE(seen.size() == 1);
    CHECK(seen[0]->reader().getStep() == 3);
    end(queue);
  }

  TEST_CASE("several replies are in the order of the questions, whichever came first") {
    std::vector<token_reply> seen;
    std::vector<token_queue_actor> queues;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      for (int i = 0; i < 3; ++i)
        queues.push_back(spawn_queue(activity.world()));
      auto asking = ask_all(activity, queues, seen);
      co_await asking;
    }};
    for (size_t i : {2U, 0U, 1U}) {
      CHECK(seen.empty());
      stage.chief.tell(queues[i], make_put_tokens(i, 1));
      stage.settle();
    }
    REQUIRE(seen.size() == 3);
    for (uint64_t i = 0; i < 3; ++i)
      CHECK(seen[i]->reader().getStep() == i);
    for (const auto& queue : queues)
      end(queue);
  }

  TEST_CASE("no questions need no answers") {
    std::vector<token_reply> seen;
    hosted_coroutine stage{[&](activity& activity) { return ask_all(activity, {}, seen); }};
    CHECK(seen.empty());
    CHECK(stage.has_left());
  }

  TEST_CASE("an error, and a receiver that is gone, are replies of their question alone") {
    std::vector<token_reply> seen;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      auto gone = spawn_queue(activity.world());
      auto closed = spawn_queue(activity.world());
      auto open = spawn_queue(activity.world());
      end(gone);
      caf::anon_send(closed, make_close_tokens());
      caf::anon_send(open, make_put_tokens(1, 1));
      auto asking = ask_all(activity, {gone, closed, open}, seen);
      co_await asking;
      end(closed);
      end(open);
    }};
    REQUIRE(seen.size() == 3);
    CHECK(seen[0].error().code == errc::unavailable);
    CHECK(seen[1].error() == error{errc::cancelled, "the job is over"});
    CHECK(seen[2]->reader().getStep() == 1);
  }

  TEST_CASE("computing without a pace takes what it takes: no virtual time") {
    outcomes seen;
    hosted_coroutine stage{computing_times(1, seen)};
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].elapsed == 0ns);
    CHECK_FALSE(seen[0].cancelled);
    CHECK_FALSE(seen[0].thrown);
    CHECK(stage.world.now() == 0ns);
  }

  TEST_CASE("the pace's delay passes in virtual time") {
    outcomes seen;
    hosted_coroutine stage{computing_times(1, seen), constant(3s)};
    stage.pass(3s - 1ns);
    CHECK(seen.empty());
    stage.pass(1ns);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].elapsed == 3s);
    CHECK_FALSE(seen[0].cancelled);
  }

  TEST_CASE("the pace is asked for each computation, counted from 0") {
    outcomes seen;
    std::vector<uint64_t> asked;
    auto pace = [&asked](uint64_t iteration, job_time elapsed) {
      CHECK(elapsed == 0ns);
      asked.push_back(iteration);
      return job_time{iteration * 10 + 1};
    };
    hosted_coroutine stage{computing_times(3, seen), pace};
    stage.pass(1s);
    CHECK(asked == std::vector<uint64_t>{0, 1, 2});
    REQUIRE(seen.size() == 3);
    CHECK(seen[2].elapsed == 21ns);
  }

  TEST_CASE("a pace of no time, or of less, adds nothing") {
    for (auto delay : {0ns, -5ns}) {
      outcomes seen;
      hosted_coroutine stage{computing_times(2, seen), constant(delay)};
      CHECK(seen.size() == 2);
      CHECK(seen[0].elapsed == 0ns);
    }
  }

  TEST_CASE("an exception of the work is its outcome, without a delay") {
    std::exception_ptr thrown;
    auto body = [&](activity& activity) -> task<void> {
      auto computing
        = activity.compute([](std::stop_token) { throw std::runtime_error{"divided by zero"}; });
      auto outcome = co_await computing;
      thrown = outcome.thrown;
    };
    hosted_coroutine stage{body, constant(3s)};
    REQUIRE(thrown);
    CHECK_THROWS_WITH_AS(std::rethrow_exception(thrown), "divided by zero", std::runtime_error);
    CHECK(stage.has_left());
  }

  TEST_CASE("work for which there is no thread has failed, and the next goes on") {
    deterministic_world stage;
    refusing_world refusing{stage.world};
    outcomes seen;
    std::string offload_failure;
    auto body = [&](activity& activity) -> task<void> {
      auto computing = compute_times(activity, 1, seen);
      co_await computing;
      auto offloading = activity.offload([] {});
      try {
        co_await offloading;
      } catch (const failure& failed) {
        offload_failure = failed.reason().message;
      }
      refusing.refuses = false;
      auto going_on = compute_times(activity, 1, seen);
      co_await going_on;
    };
    auto host = stage.spawn(replica, replica_config{.world = &refusing.world, .body = body});
    stage.settle();
    REQUIRE(seen.size() == 2);
    CHECK_THROWS_WITH_AS(std::rethrow_exception(seen[0].thrown), "no thread", failure);
    CHECK(offload_failure == "no thread");
    CHECK_FALSE(seen[1].thrown);
    caf::anon_send_exit(host, caf::exit_reason::kill);
  }

  TEST_CASE("a cancelled delay ends at once") {
    outcomes seen;
    hosted_coroutine stage{computing_times(1, seen), constant(3s)};
    stage.pass(1s);
    stage.cancel_before(1);
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].cancelled);
    CHECK(stage.world.now() == 1s);
  }

  TEST_CASE("work for the step that is wanted goes on") {
    outcomes seen;
    auto body = [&](activity& activity) -> task<void> {
      activity.set_local_step(5);
      auto computing = compute_times(activity, 1, seen);
      co_await computing;
    };
    hosted_coroutine stage{body, constant(3s)};
    stage.cancel_before(5);
    CHECK(seen.empty());
    stage.pass(3s);
    REQUIRE(seen.size() == 1);
    CHECK_FALSE(seen[0].cancelled);
  }

  TEST_CASE("an older cancellation does not undo a newer one") {
    outcomes seen;
    hosted_coroutine stage{computing_times(2, seen), constant(3s)};
    stage.cancel_before(2);
    stage.cancel_before(0);
    CHECK(seen.size() == 2);
    CHECK(seen[1].cancelled);
  }

  TEST_CASE("work for a step that is past is asked to stop before it begins, and not delayed") {
    bool asked_to_stop = false;
    outcomes seen;
    auto body = [&](activity& activity) -> task<void> {
      auto waiting = activity.compute(no_work);
      seen.push_back(co_await waiting);
      auto computing
        = activity.compute([&](std::stop_token stop) { asked_to_stop = stop.stop_requested(); });
      seen.push_back(co_await computing);
    };
    hosted_coroutine stage{body, constant(3s)};
    stage.cancel_before(1);
    REQUIRE(seen.size() == 2);
    CHECK(asked_to_stop);
    CHECK(seen[1].cancelled);
    CHECK(stage.world.now() == 0ns);
  }

  TEST_CASE("a cancellation that comes between the work and its delay spares the delay") {
    outcomes seen;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
                             auto computing = activity.compute([&](std::stop_token) {
                               activity.cancel_before(1); // as the message would, just now
                             });
                             seen.push_back(co_await computing);
                           },
                           constant(3s)};
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].cancelled);
    CHECK(stage.world.now() == 0ns);
  }

  TEST_CASE("the end of a delay that was cancelled does not end the next one") {
    outcomes seen;
    auto body = [&](activity& activity) -> task<void> {
      auto first = activity.compute(no_work);
      seen.push_back(co_await first);
      activity.set_local_step(1);
      auto second = activity.compute(no_work);
      seen.push_back(co_await second);
    };
    hosted_coroutine stage{body, constant(3s)};
    stage.pass(2s);
    stage.cancel_before(1);
    CHECK(seen.size() == 1);
    stage.pass(2s); // past the end of the first delay
    CHECK(seen.size() == 1);
    stage.pass(1s);
    REQUIRE(seen.size() == 2);
    CHECK_FALSE(seen[1].cancelled);
    CHECK(seen[1].elapsed == 3s);
  }

  TEST_CASE("a step goes on from where the coroutine says") {
    std::vector<uint64_t> steps;
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
      steps.push_back(activity.local_step());
      activity.set_local_step(4);
      steps.push_back(activity.local_step());
      CHECK(activity.progress().computations == 0);
      auto computing = activity.compute(no_work);
      co_await computing;
      CHECK(activity.progress().computations == 1);
    }};
    CHECK(stage.has_left());
    CHECK(steps == std::vector<uint64_t>{0, 4});
  }

  TEST_CASE("work that runs on another thread is asked to stop") {
    std::promise<void> working;
    std::promise<bool> was_cancelled;
    auto world = world::threads({.threads = 2}); // waits for its actors, so it goes first
    auto body = [&](activity& activity) -> task<void> {
      auto computing = activity.compute([&](std::stop_token stop) {
        working.set_value();
        while (!stop.stop_requested())
          std::this_thread::yield();
      });
      auto outcome = co_await computing;
      was_cancelled.set_value(outcome.cancelled);
    };
    auto host = world.system().spawn(replica, replica_config{.world = &world, .body = body});
    working.get_future().wait();
    caf::anon_send(host, make_cancel_step(1));
    CHECK(was_cancelled.get_future().get());
  }

  TEST_CASE("an exception of the pace is the outcome of the computation") {
    outcomes seen;
    hosted_coroutine stage{computing_times(2, seen), [](uint64_t, job_time) -> job_time {
                             throw std::runtime_error{"no pace"};
                           }};
    REQUIRE(seen.size() == 2);
    for (const auto& outcome : seen)
      CHECK_THROWS_WITH(std::rethrow_exception(outcome.thrown), "no pace");
  }

  TEST_CASE("messages are answered while work runs on another thread") {
    std::promise<void> working;
    std::promise<void> enough;
    auto world = world::threads({.threads = 2});
    auto body = [&](activity& activity) -> task<void> {
      auto computing = activity.compute([&](std::stop_token) {
        working.set_value();
        enough.get_future().wait();
      });
      co_await computing;
    };
    auto host = world.system().spawn(replica, replica_config{.world = &world, .body = body});
    working.get_future().wait();
    for (uint64_t step = 0; step < 100; ++step)
      caf::anon_send(host, make_cancel_step(0));
    enough.set_value();
  }
}

} // namespace activity_test
