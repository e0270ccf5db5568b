// SPDX-License-Identifier: Apache-2.0
// Goal: the chief hears of a replica when it comes and when it leaves, whatever its coroutine does.
// Method: a puppet for a chief, and bodies that end in every way there is.
#include "actors/training/replica.hpp"
#include "messages/errors/failure.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/hosted_coroutine.hpp"

#include <stdexcept>

namespace replica_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr auto no_work = [](std::stop_token) {};

pace_function one_second() {
  return [](uint64_t, job_time) { return 1s; };
}

task<void> do_nothing(activity&) {
  co_return;
}

task<void> compute_once(activity& activity) {
  auto computing = activity.compute(no_work);
  co_await computing;
}

/// The farewell of a replica after its body computes and then throws `thrown`.
template <class Thrown>
error farewell_after(Thrown thrown) {
  hosted_coroutine stage{[thrown](activity& activity) -> task<void> {
    auto computing = activity.compute(no_work);
    co_await computing;
    throw thrown;
  }};
  return stage.reason();
}

} // namespace

TEST_SUITE("actors/training/replica") {
  TEST_CASE("a replica joins first and says farewell last, with its index") {
    hosted_coroutine stage{compute_once, one_second(), 7};
    auto joined = stage.chief.heard<wire::JoinJob>();
    REQUIRE(joined.size() == 1);
    CHECK(joined[0].reader().getReplica() == 7);
    CHECK(stage.chief.heard_count() == 1);
    stage.pass(1s);
    REQUIRE(stage.has_left());
    CHECK(stage.chief.heard<wire::Farewell>()[0].reader().getReplica() == 7);
    CHECK(stage.chief.heard_count() == 2);
  }

  TEST_CASE("a replica that is done gives no reason, and ends") {
    hosted_coroutine stage{do_nothing};
    CHECK(stage.reason() == error{});
    auto asked
      = stage.chief.ask<caf::unit_t>(caf::actor_cast<caf::actor>(stage.host), make_cancel_step(0));
    stage.settle();
    CHECK(asked.error().code == errc::unavailable);
  }

  TEST_CASE("an exception becomes the farewell, with its text") {
    CHECK(farewell_after(std::runtime_error{"the data is gone"})
          == error{errc::user_code, "the data is gone"});
  }

  TEST_CASE("a failure keeps its code") {
    CHECK(farewell_after(failure{{errc::not_found, "no variable 'w'"}})
          == error{errc::not_found, "no variable 'w'"});
  }

  TEST_CASE("being cancelled is no failure: the job is over") {
    CHECK(farewell_after(failure{{errc::cancelled, "the job is over"}}) == error{});
  }

  TEST_CASE("something that is no exception is a failure of the user's code all the same") {
    CHECK(farewell_after(42)
          == error{errc::user_code, "threw something that is no std::exception"});
  }

  TEST_CASE("an exception before the first wait, or before the coroutine exists, is told too") {
    hosted_coroutine at_once{[](activity&) -> task<void> {
      throw std::runtime_error{"at once"};
      co_return;
    }};
    CHECK(at_once.reason().message == "at once");
    hosted_coroutine before{
      [](activity&) -> task<void> { throw std::runtime_error{"no coroutine"}; }};
    CHECK(before.reason().message == "no coroutine");
    CHECK(before.chief.heard<wire::JoinJob>().size() == 1);
  }

  TEST_CASE("a long text is cut") {
    auto reason = farewell_after(std::runtime_error{std::string(100'000, 'x')});
    CHECK(reason.code == errc::user_code);
    CHECK(reason.message.size() <= 4096);
  }

  TEST_CASE("a replica without a chief lives and ends in silence") {
    deterministic_world stage;
    bool lived = false;
    auto body = [&](activity&) -> task<void> {
      lived = true;
      throw std::runtime_error{"nobody hears this"};
      co_return;
    };
    stage.spawn(replica, replica_config{.world = &stage.world, .body = body});
    stage.settle();
    CHECK(lived);
    CHECK(stage.actors_alive() == 0);
  }

  TEST_CASE("a replica that is killed takes its coroutine with it, and says nothing") {
    auto witness = std::make_shared<int>(1);
    hosted_coroutine stage{[witness](activity& activity) -> task<void> {
                             auto held = witness;
                             auto computing = activity.compute(no_work);
                             co_await computing;
                             static_cast<void>(held);
                           },
                           one_second()};
    CHECK(witness.use_count() == 3); // the test's, the body's, the coroutine's
    caf::anon_send_exit(stage.host, caf::exit_reason::kill);
    stage.settle();
    stage.host = nullptr;
    CHECK(witness.use_count() == 1);
    stage.pass(2s);
    CHECK_FALSE(stage.has_left());
  }

  TEST_CASE("a replica outlives its chief") {
    hosted_coroutine stage{compute_once, one_second()};
    caf::anon_send_exit(stage.chief.as<caf::actor>(), caf::exit_reason::kill);
    stage.pass(1s);
    CHECK(stage.actors_alive() == 0);
  }

  TEST_CASE("a replica says where it is: computing, for how long still, and what it keeps") {
    hosted_coroutine stage{[](activity& activity) -> task<void> {
                             activity.set_local_step(4);
                             activity.keep("place", make_tensor({1}, {7}));
                             auto computing = activity.compute(no_work);
                             co_await computing;
                             activity.count_iteration();
                             auto again = activity.compute(no_work);
                             co_await again;
                           },
                           one_second(), 3};
    stage.pass(1300ms);
    auto answer = stage.chief.ask<msg<wire::ReplicaProgress>>(stage.host, make_read_progress());
    stage.settle();
    auto progress = read_progress(answer.value().reader(), answer.value().owner());
    CHECK(progress.replica == 3);
    CHECK(progress.computing);
    CHECK(progress.local_step == 4);
    CHECK(progress.iteration == 1);
    CHECK(progress.computations == 2);
    CHECK(progress.remaining == 700ms);
    CHECK(progress.compute == 1s);
    REQUIRE(progress.kept.size() == 1);
    CHECK(progress.kept[0].name == "place");
    CHECK(progress.kept[0].value.values<float>()[0] == 7);
  }

  TEST_CASE("a restored replica rests for what was left, and counts on from there") {
    std::vector<uint64_t> paced;
    job_time rested{0};
    job_time took{0};
    replica_progress saved{.computing = true,
                           .local_step = 4,
                           .iteration = 6,
                           .computations = 9,
                           .remaining = 700ms,
                           .compute = 2s};
    hosted_coroutine stage{[&](activity& activity) -> task<void> {
                             activity.restore(saved);
                             auto resting = activity.rest(saved.remaining);
                             auto outcome = co_await resting;
                             took = outcome.elapsed;
                             rested = activity.world().now();
                             auto computing = activity.compute(no_work);
                             co_await computing;
                           },
                           [&](uint64_t number, job_time) {
                             paced.push_back(number);
                             return 1s;
                           }};
    stage.pass(200ms);
    auto answer = stage.chief.ask<msg<wire::ReplicaProgress>>(stage.host, make_read_progress());
    stage.settle();
    auto progress = read_progress(answer.value().reader(), answer.value().owner());
    CHECK(progress.remaining == 500ms);
    CHECK(progress.compute == 2s);
    stage.pass(3s);
    CHECK(rested == 700ms);
    CHECK(took == 2s);
    CHECK(paced == std::vector<uint64_t>{9});
  }
}

} // namespace replica_test
