// SPDX-License-Identifier: Apache-2.0
// Goal: however a job ends, the report says why and names the replica at fault, and none is left
// behind. Method: replicas that throw, forget, hang and push nonsense; jobs that are stopped.
#include "strategies/jobs/training.hpp"
#include "tests/strategies/small_job.hpp"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace job_end_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

const auto no_gradient = zeros({1}, dtype::f64);

/// Replica 1 does `deed` when it has made `after` steps; the others work.
template <class Deed>
step_function misbehaving(const small_job& job, uint64_t after, Deed deed) {
  return [&job, after, deed](replica_context& context) -> task<void> {
    if (context.replica_id_in_sync_group() == 1 && context.iteration() == after) {
      auto doing = deed(context);
      co_await doing;
      co_return;
    }
    auto giving = give(context, job.optimizer, job.weights, no_gradient);
    co_await giving;
  };
}

/// The only replica does `deed` at once; how the job ends.
template <class Deed>
course alone(Deed deed) {
  small_job job{{1, 1, sync_policy::latest_token}};
  return job.run([&](replica_context& context) { return deed(context, job); },
                 {.steps = 2, .pace = one_second});
}

task<void> throw_a_fit(replica_context&) {
  throw std::runtime_error{"the data is gone"};
  co_return;
}

task<void> do_nothing(replica_context&) {
  co_return;
}

task<void> apply(replica_context& context, const small_job& job, variable to, gradient value) {
  std::vector<gradient_and_variable> gradients{{std::move(value), std::move(to)}};
  auto applying = job.optimizer.apply_gradients(context, gradients);
  co_await applying;
}

void check_single_loss(const course& seen, errc code, const std::string& line) {
  REQUIRE(seen.report.lost.size() == 1);
  CHECK(seen.report.lost[0].reason == error{code, line});
  REQUIRE(seen.report.failure);
  CHECK(seen.report.failure->code == code);
  CHECK(seen.report.failure->message
        == "step 1 needs 1 gradients, but 0 of 1 replicas are left; lost replica 0: " + line);
}

/// Counts step functions that run.
struct head_count {
  explicit head_count(std::atomic<int>& inside) : inside_(inside) { ++inside_; }

  ~head_count() { --inside_; }

private:
  std::atomic<int>& inside_;
};

} // namespace

TEST_SUITE("strategies/jobs/job_end") {
  TEST_CASE("a job that makes all its steps ends without a word") {
    small_job job{{2, 2, sync_policy::latest_token}};
    auto seen = job.run_idle({.steps = 5, .pace = one_second});
    CHECK(seen.report.step == 5);
    CHECK_FALSE(seen.report.failure);
    CHECK_FALSE(seen.report.stopped);
    CHECK(seen.report.lost.empty());
    CHECK(seen.warnings.empty());
    CHECK(seen.steps.size() == 5);
  }

  TEST_CASE("a replica that throws is named, and the job goes on if enough are left") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      small_job job{{2, 3, policy}};
      auto seen = job.run(misbehaving(job, 1, throw_a_fit), {.steps = 6, .pace = one_second});
      CHECK(seen.report.step == 6);
      CHECK_FALSE(seen.report.failure);
      REQUIRE(seen.report.lost.size() == 1);
      CHECK(seen.report.lost[0].replica == 1);
      CHECK(seen.report.lost[0].reason == error{errc::user_code, "the data is gone"});
      CHECK(seen.warnings
            == std::vector<std::string>{
              "lost replica 1: the data is gone; the job goes on with 2 of 3 replicas"});
    }
  }

  TEST_CASE("where replicas throw until a step cannot end, the job ends with what they threw") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      small_job job{{3, 3, policy}};
      auto step = [&](replica_context& context) -> task<void> {
        auto throws = context.replica_id_in_sync_group() > 0 && context.iteration() == 3;
        if (throws) throw std::runtime_error{"the data is gone"};
        auto giving = give(context, job.optimizer, job.weights, no_gradient);
        co_await giving;
      };
      auto report = job.run(step, {.steps = 6, .pace = one_second}).report;
      REQUIRE(report.failure);
      CAPTURE(report.failure->message);
      CHECK(report.failure->code == errc::user_code);
      CHECK(report.failure->message.find("; lost replica ") != std::string::npos);
      CHECK(report.failure->message.ends_with(": the data is gone"));
      auto is_stall = report.failure->message.find("no token is left") != std::string::npos;
      CHECK(is_stall == (policy == sync_policy::tensorflow));
    }
  }

  TEST_CASE("a replica that throws before the others have begun does not end the job") {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      small_job job{{2, 3, sync_policy::latest_token}, seed};
      auto seen = job.run(misbehaving(job, 0, throw_a_fit), {.steps = 2, .pace = one_second});
      CHECK(seen.report.step == 2);
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.report.lost.size() == 1);
    }
  }

  TEST_CASE("a replica that throws ends the job if too few are left, by name") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      small_job job{{3, 3, policy}};
      auto seen = job.run(misbehaving(job, 2, throw_a_fit), {.steps = 6, .pace = one_second});
      CHECK(seen.report.step == 2);
      REQUIRE(seen.report.failure);
      CHECK(*seen.report.failure
            == error{errc::user_code, "step 3 needs 3 gradients, but 2 of 3 replicas are left; "
                                      "lost replica 1: the data is gone"});
      CHECK(seen.steps.size() == 2);
    }
  }

  TEST_CASE("a step function that forgets apply_gradients is told so") {
    check_single_loss(
      alone([](replica_context& context, const small_job&) { return do_nothing(context); }),
      errc::failed_precondition,
      "the step function returned without apply_gradients; it would never end");
  }

  TEST_CASE("a step function that returns an empty task ends its replica, and says why") {
    auto empty = [](replica_context&, const small_job&) -> task<void> { return {}; };
    check_single_loss(alone(empty), errc::failed_precondition,
                      "this task cannot be awaited: it was awaited before, was moved from, or is "
                      "empty as from 'return {}'; call its function again for each co_await");
  }

  TEST_CASE("a gradient of another shape or dtype ends the replica, and says what was expected") {
    check_single_loss(alone([](replica_context& context, const small_job& job) {
                        return apply(context, job, job.weights, zeros({2}, dtype::f64));
                      }),
                      errc::invalid_argument,
                      "Shape mismatch: variable 'w' has shape [1], its gradient's is [2]");
    check_single_loss(alone([](replica_context& context, const small_job& job) {
                        return apply(context, job, job.weights, zeros({1}, dtype::i32));
                      }),
                      errc::type_mismatch, "variable 'w' is f64, its gradient i32");
  }

  TEST_CASE("a variable that the job does not train is refused by name") {
    auto elsewhere = world::virtual_time();
    parameter_server_strategy other{elsewhere};
    auto stranger = other.make_variable("stranger", no_gradient);
    check_single_loss(alone([&](replica_context& context, const small_job& job) {
                        return apply(context, job, stranger, no_gradient);
                      }),
                      errc::not_found, "this job does not train variable 'stranger'");
  }

  TEST_CASE("no gradients at all are refused") {
    auto apply_nothing = [](replica_context& context, const small_job& job) -> task<void> {
      auto applying = job.optimizer.apply_gradients(context, {});
      co_await applying;
    };
    check_single_loss(alone(apply_nothing), errc::invalid_argument,
                      "Must supply at least one variable: apply_gradients got no gradient");
  }

  TEST_CASE("a replica whose gradient was refused may go on") {
    small_job job{{1, 1, sync_policy::latest_token}};
    int refused = 0;
    auto step = [&](replica_context& context) -> task<void> {
      auto wrong = apply(context, job, job.weights, zeros({2}, dtype::f64));
      try {
        co_await wrong;
      } catch (const failure& failed) {
        CHECK(failed.reason().code == errc::invalid_argument);
        ++refused;
      }
      auto right = apply(context, job, job.weights, no_gradient);
      co_await right;
    };
    auto seen = job.run(step, {.steps = 3});
    CHECK(seen.report.step == 3);
    CHECK(refused == 3);
  }

  TEST_CASE("a variable without a gradient stalls the job") {
    small_job job{{1, 1, sync_policy::latest_token}};
    static_cast<void>(job.strategy.make_variable("forgotten", no_gradient));
    auto seen = job.run_idle({.steps = 2, .pace = one_second});
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->code == errc::stalled);
    CHECK(seen.report.step == 0);
  }

  TEST_CASE("a step that takes too long ends the job and names the missing replica") {
    small_job job{{3, 3, sync_policy::latest_token}};
    auto pace = [](uint32_t replica, uint64_t iteration, job_time) {
      return replica == 2 && iteration == 1 ? 24h : 1s;
    };
    auto seen = job.run_idle({.steps = 5, .deadline = 60s, .pace = pace});
    CHECK(seen.report.step == 1);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->code == errc::deadline_exceeded);
    CHECK(seen.report.failure->message
          == "step 2 is not over after 60.5 s; still missing: replica 2");
    CHECK(seen.warnings
          == std::vector<std::string>{"step 2 takes 10.5 s so far; still waiting for replica 2"});
    CHECK(seen.report.lost.empty());
    CHECK(job.world.now() < 2min); // no wait for the straggler any more
  }

  TEST_CASE("a job that is asked to stop ends with the steps it has made") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      small_job job{{2, 3, policy, 0}};
      std::stop_source stop;
      training_options options{.steps = 1000, .pace = one_second, .stop = stop.get_token()};
      options.on_step = [&](const step_record& record) {
        if (record.step == 3) stop.request_stop();
      };
      auto seen = job.run_idle(options);
      CHECK(seen.report.step == 3);
      CHECK(seen.report.stopped == "asked to stop");
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.report.lost.empty());
      CHECK(seen.steps.size() == 3);
      CHECK(job.world.now() == 3s); // the computing that was under way was cut short
    }
  }

  TEST_CASE("a job that was stopped can be gone on with") {
    small_job job{{1, 1, sync_policy::latest_token}};
    std::stop_source stop;
    training_options options{.steps = 10, .pace = one_second, .stop = stop.get_token()};
    options.on_step = [&](const step_record&) { stop.request_stop(); };
    CHECK(job.run_idle(options).report.step == 1);
    CHECK(job.run_idle({.steps = 2, .pace = one_second}).report.step == 3);
  }

  TEST_CASE(
    "a job that is asked to stop before it begins makes no step, and leaves no replica running") {
    for (auto make : {+[] { return world::virtual_time(); }, +[] { return world::threads(); }}) {
      std::atomic<int> inside = 0;
      std::atomic<bool> is_over = false;
      small_job job{make(), {2, 4, sync_policy::latest_token}};
      std::stop_source stop;
      stop.request_stop();
      auto step = [&](replica_context& context) -> task<void> {
        CHECK_FALSE(is_over);
        head_count here{inside};
        auto giving = give(context, job.optimizer, job.weights, no_gradient);
        co_await giving;
      };
      auto seen = job.run(step, {.steps = 5, .stop = stop.get_token()});
      is_over = true;
      CHECK(inside == 0);
      CHECK(seen.report.stopped == "asked to stop");
      CHECK(seen.report.step <= 1);
      CHECK(seen.report.lost.empty());
    }
  }

  TEST_CASE("a job in a threads world is stopped from another thread while it computes") {
    std::promise<void> computing;
    std::atomic<bool> is_first = true;
    small_job job{world::threads({.threads = 2}), {1, 1, sync_policy::latest_token}};
    std::stop_source stop;
    auto step = [&](replica_context& context) -> task<void> {
      auto work = context.compute([&](std::stop_token asked) {
        if (is_first.exchange(false)) computing.set_value();
        while (!asked.stop_requested())
          std::this_thread::yield();
        return 0;
      });
      co_await work;
    };
    std::thread user{[&] {
      computing.get_future().wait();
      stop.request_stop();
    }};
    auto seen = job.run(step, {.steps = 5, .stop = stop.get_token()});
    user.join();
    CHECK(seen.report.stopped == "asked to stop");
    CHECK(seen.report.step == 0);
    CHECK(seen.report.lost.empty());
  }

  TEST_CASE("a failed job leaves the variables where its last step put them") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      if (context.iteration() == 2) throw std::runtime_error{"enough"};
      tensor one{dtype::f64, {1}};
      one.mutable_values<double>()[0] = 1;
      auto giving = give(context, job.optimizer, job.weights, one);
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 5});
    CHECK(seen.report.failure);
    CHECK(seen.report.step == 2);
    CHECK(job.values() == std::vector<double>{-2});
  }
}

} // namespace job_end_test
