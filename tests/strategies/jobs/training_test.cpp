// SPDX-License-Identifier: Apache-2.0
// Goal: a job shows its replicas what they need, and the caller what happened. Method: small jobs
// in the virtual world, seen from the step function and from the ledger.
#include "strategies/jobs/hook_list.hpp"
#include "strategies/jobs/hooks.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/strategies/small_job.hpp"

#include <atomic>
#include <set>

namespace training_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// The failure that `action` throws; the test fails if it throws nothing, or something else.
template <class Action>
error failure_of(const Action& action) {
  try {
    action();
  } catch (const failure& failed) {
    return failed.reason();
  }
  FAIL("nothing was thrown");
  return {};
}

task<void> never_called(replica_context&) {
  FAIL("the step function was called");
  co_return;
}

const auto no_gradient = zeros({1}, dtype::f64);

tensor number(double value) {
  tensor result{dtype::f64, {1}};
  result.mutable_values<double>()[0] = value;
  return result;
}

} // namespace

TEST_SUITE("strategies/jobs/training") {
  TEST_CASE("a job that cannot begin, or is told what has no meaning for it, is refused") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    sync_replicas_optimizer optimizer{rules::sgd{}, {1, 2}};
    CHECK(
      failure_of([&] { train(strategy, optimizer, never_called, {}); })
      == error{errc::invalid_argument, "the strategy has no variables; make one before training"});
    static_cast<void>(strategy.make_variable("w", zeros({1})));
    CHECK(failure_of([&] { train(strategy, optimizer, never_called, {.steps = 0}); })
          == error{errc::invalid_argument, "steps is 0; training needs at least 1"});
    sync_replicas_optimizer other{rules::sgd{}, {1, 3}};
    CHECK(failure_of([&] { train(strategy, other, never_called, {}); })
          == error{errc::invalid_argument,
                   "the strategy has 2 replicas, the optimizer expects 3; make them agree"});
    auto compared
      = failure_of([&] { train(strategy, optimizer, never_called, {.check_replicas_every = 5}); });
    CHECK(compared.code == errc::invalid_argument);
    CHECK(compared.message.find("check_replicas_every has no meaning") == 0);
  }

  TEST_CASE("an empty function is refused where it is given") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto& strategy = job.strategy;
    const error empty{errc::invalid_argument, "train was given an empty function"};
    CHECK(failure_of([&] { train(strategy, job.optimizer, step_function{}, {}); }) == empty);
    CHECK(failure_of([&] { train(strategy, job.optimizer, session_function{}, {}); }) == empty);
    CHECK(failure_of([&] { train(strategy, step_function{}, {}); }) == empty);
    CHECK(failure_of([] { logging_hook(1, {}); }).message
          == "logging_hook was given an empty function");
    CHECK(failure_of([] { profile_window_hook(1, 2, {}); }).message
          == "profile_window_hook was given an empty function");
  }

  TEST_CASE("an optimizer that cannot work is refused when it is made") {
    CHECK(failure_of([] {
            sync_replicas_optimizer{rules::sgd{.learning_rate = -1}, {}};
          }).code
          == errc::invalid_argument);
    CHECK(failure_of([] {
            sync_replicas_optimizer{rules::sgd{}, {6, 2, sync_policy::tensorflow, 3}};
          })
          == error{errc::invalid_argument,
                   "Too few tokens to finish the first step: 3 (given) vs 4 (needed)"});
  }

  TEST_CASE("a replica knows its number, which step it works for and how many it has made") {
    small_job job{{3, 3, sync_policy::latest_token}};
    std::set<std::tuple<uint32_t, uint64_t, uint64_t>> seen;
    auto step = [&](replica_context& context) -> task<void> {
      CHECK(context.num_replicas_in_sync() == 3);
      seen.emplace(context.replica_id_in_sync_group(), context.local_step(), context.iteration());
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      co_await giving;
    };
    static_cast<void>(job.run(step, {.steps = 2, .pace = one_second}));
    CHECK(seen == decltype(seen){{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {0, 1, 1}, {1, 1, 1}, {2, 1, 1}});
  }

  TEST_CASE("a replica's random numbers are those of the world's seed, its index and its step") {
    small_job job{{2, 2, sync_policy::latest_token}, 99};
    auto step = [&](replica_context& context) -> task<void> {
      random_key expected{99, "dropout", context.replica_id_in_sync_group(), context.iteration()};
      CHECK(context.random("dropout") == expected);
      CHECK(context.random("batch") != expected);
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      co_await giving;
    };
    static_cast<void>(job.run(step, {.steps = 3}));
  }

  TEST_CASE("a replica reads the variables as the last step left them") {
    small_job job{{2, 2, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      auto reading = context.read({job.weights, job.weights});
      auto values = co_await reading;
      CHECK(values.size() == 2);
      CHECK(values[0].data() == values[1].data());
      CHECK(values[0].values<double>()[0] == -1.0 * static_cast<double>(context.local_step()));
      auto giving = give(context, job.optimizer, job.weights, number(1));
      co_await giving;
    };
    static_cast<void>(job.run(step, {.steps = 4, .pace = one_second}));
    CHECK(job.values() == std::vector<double>{-4});
  }

  TEST_CASE("a replica is told what became of its gradient") {
    small_job job{{1, 2, sync_policy::latest_token}};
    std::vector<apply_outcome> outcomes[2];
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      auto outcome = co_await giving;
      outcomes[context.replica_id_in_sync_group()].push_back(outcome);
    };
    auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 0 ? 2s : 5s; };
    static_cast<void>(job.run(step, {.steps = 4, .pace = pace}));
    REQUIRE(outcomes[0].size() == 3);
    CHECK(outcomes[0][0].accepted == 1);
    CHECK(outcomes[0][0].stale == 0);
    CHECK(outcomes[0][0].global_step == 1);
    REQUIRE(outcomes[1].size() == 1); // at 5 s, after two steps of the other one
    CHECK(outcomes[1][0].accepted == 0);
    CHECK(outcomes[1][0].stale == 1);
    CHECK(outcomes[1][0].global_step == 2);
  }

  TEST_CASE("the ledger has what a replica reports, how long it computed and how long it waited") {
    small_job job{{2, 2, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      if (context.iteration() == 0) context.report(0.5, 32);
      auto first = context.compute([](std::stop_token) { return 0; });
      co_await first;
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      co_await giving;
    };
    auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 0 ? 1s : 3s; };
    auto seen = job.run(step, {.steps = 2, .pace = pace});
    REQUIRE(seen.steps.size() == 2);
    REQUIRE(replicas_of(seen.steps[0].accepted) == replica_list{0, 1});
    const auto& first = seen.steps[0].accepted[0];
    CHECK(first.loss == 0.5);
    CHECK(first.examples == 32);
    CHECK(first.compute == 2s); // both computations of the step
    CHECK(first.waited == 0s);
    CHECK(first.arrived == 2s);
    CHECK(seen.steps[0].accepted[1].compute == 6s);
    const auto& second = seen.steps[1].accepted[0];
    CHECK(second.waited == 4s);
    CHECK(second.compute == 2s);
    CHECK(seen.steps[1].accepted[1].waited == 0s);
  }

  TEST_CASE("a step that reports nothing is not credited with what the one before reported") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      if (context.iteration() == 0) context.report(0.5, 32);
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 2});
    REQUIRE(seen.steps.size() == 2);
    CHECK(std::isnan(seen.steps[1].accepted[0].loss));
    CHECK(seen.steps[1].accepted[0].examples == 0);
  }

  TEST_CASE("an exception of work comes out where the step function waits for it") {
    small_job job{{1, 1, sync_policy::latest_token}};
    int caught = 0;
    auto step = [&](replica_context& context) -> task<void> {
      auto failing
        = context.compute([](std::stop_token) -> int { throw std::runtime_error{"no memory"}; });
      try {
        co_await failing;
      } catch (const std::runtime_error& thrown) {
        CHECK(std::string_view{thrown.what()} == "no memory");
        ++caught;
      }
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 3});
    CHECK(caught == 3);
    CHECK(seen.report.step == 3);
  }

  TEST_CASE("two jobs after each other continue the step count and the variables") {
    small_job job{{2, 2, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, job.optimizer, job.weights, number(1));
      co_await giving;
    };
    auto first = job.run(step, {.steps = 3, .pace = one_second});
    auto second = job.run(step, {.steps = 2, .pace = one_second});
    CHECK(first.report.step == 3);
    CHECK(second.report.step == 5);
    REQUIRE(second.steps.size() == 2);
    CHECK(second.steps[0].step == 4);
    CHECK(second.steps[0].accepted[0].local_step == 3);
    CHECK(job.values() == std::vector<double>{-5});
  }

  TEST_CASE("a second job under tensorflow wastes its round again, and nothing else") {
    small_job job{{2, 2}};
    CHECK(job.run_idle({.steps = 3, .pace = one_second}).seconds() == std::vector<double>{1, 2, 1});
    CHECK(job.run_idle({.steps = 3, .pace = one_second}).seconds() == std::vector<double>{1, 2, 1});
  }

  TEST_CASE("variables are evaluated every few steps, as the step left them") {
    small_job job{{2, 2, sync_policy::latest_token}};
    std::vector<std::pair<uint64_t, double>> results;
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, job.optimizer, job.weights, number(1));
      co_await giving;
    };
    evaluation evaluation{
      2,
      [](std::span<const tensor> variables) { return variables[0].values<double>()[0]; },
      [&](uint64_t at, double value) { results.emplace_back(at, value); },
    };
    auto options = training_options{.steps = 6, .pace = one_second, .evaluation = evaluation};
    static_cast<void>(job.run(step, options));
    using pairs = std::vector<std::pair<uint64_t, double>>;
    CHECK(results == pairs{{2, -2}, {4, -4}, {6, -6}});
    results.clear();
    static_cast<void>(job.run(step, options));
    CHECK(results == pairs{{8, -8}, {10, -10}, {12, -12}});
  }

  TEST_CASE("an evaluation that throws ends neither the job nor later ones") {
    small_job job{{1, 1, sync_policy::latest_token}};
    std::vector<uint64_t> results;
    int looks = 0;
    evaluation evaluation{
      1,
      [&](std::span<const tensor>) { return ++looks == 1 ? throw std::runtime_error{"no"} : 1.0; },
      [&](uint64_t at, double) { results.push_back(at); }};
    auto seen = job.run_idle({.steps = 3, .pace = one_second, .evaluation = evaluation});
    CHECK(seen.report.step == 3);
    CHECK_FALSE(seen.report.failure);
    CHECK(results == std::vector<uint64_t>{2, 3});
    CHECK(
      seen.warnings
      == std::vector<std::string>{"the evaluation at step 1 has failed, and training goes on: no"});
  }

  TEST_CASE("null hooks, strange replicas and evaluations without functions are refused before the "
            "job begins") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto refused = [&](const training_options& options) {
      auto reason = refusal_of([&] { static_cast<void>(job.run_idle(options)); });
      CHECK(reason.code == errc::invalid_argument);
      return reason.message;
    };
    CHECK(refused({.steps = 1, .hooks = {nullptr}})
          == "a hook of the job is a null pointer; make the hook, or leave it out");
    evaluation look{.every_steps = 2, .evaluate = {}, .on_result = [](uint64_t, double) {}};
    CHECK(refused({.steps = 1, .evaluation = look})
          == "evaluation.every_steps is 2, but evaluation.evaluate is empty; set the function, or "
             "evaluate every 0 steps");
    look = {
      .every_steps = 2, .evaluate = [](std::span<const tensor>) { return 0.0; }, .on_result = {}};
    CHECK(refused({.steps = 1, .evaluation = look})
          == "evaluation.every_steps is 2, but evaluation.on_result is empty; set the function, or "
             "evaluate every 0 steps");
    CHECK(refused({.steps = 1, .dead_replicas = {1}})
          == "dead_replicas names replica 1, but there are 1 replicas");
    CHECK_FALSE(job.run_idle({.steps = 1}).report.failure);
  }

  TEST_CASE("a report survives a function that is told of the failure and throws") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto step = [](replica_context&) -> task<void> {
      throw std::runtime_error{"no data"};
      co_return;
    };
    auto seen = job.run(step, {.steps = 2, .on_failure = [](const error&) { throw 5; }});
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message.ends_with("no data"));
  }

  TEST_CASE("a job of a strategy with copies is evaluated as a whole") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = {"cpu:0", "cpu:1"}}};
    auto weights = strategy.make_variable("w", number(0));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1},
                                      {2, 2, sync_policy::latest_token}};
    std::vector<double> results;
    evaluation look{1, [](std::span<const tensor> all) { return all[0].values<double>()[0]; },
                    [&](uint64_t, double value) { results.push_back(value); }};
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, optimizer, weights, number(1));
      co_await giving;
    };
    auto report
      = train(strategy, optimizer, step, {.steps = 3, .pace = one_second, .evaluation = look});
    CHECK_FALSE(report.failure);
    CHECK(results == std::vector<double>{-1, -2, -3});
  }

  TEST_CASE("variables that are listed twice, or of another strategy, are not trained") {
    small_job job{{1, 1, sync_policy::latest_token}};
    small_job other{{1, 1, sync_policy::latest_token}};
    auto refused = [&](std::vector<variable> variables) {
      return refusal_of(
        [&] { static_cast<void>(job.run_idle({.steps = 1, .variables = std::move(variables)})); });
    };
    CHECK(refused({job.weights, job.weights}).message
          == "variable 'w' is listed twice in variables");
    CHECK(refused({other.weights}).message
          == "variable 'w' is of another strategy; train those of this one");
  }

  TEST_CASE("a function that is told of steps and throws ends the job with what it threw") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto seen = job.run_idle({.steps = 9, .pace = one_second, .on_step = [](const step_record&) {
                                throw std::runtime_error{"no\nroom \xff"};
                              }});
    REQUIRE(seen.report.failure);
    CHECK(*seen.report.failure == error{errc::user_code, "no room ?"});
    CHECK(seen.report.step < 9);
  }

  TEST_CASE("a function that throws no std::exception is named as what threw") {
    small_job job{{1, 1, sync_policy::latest_token}};
    auto seen = job.run_idle(
      {.steps = 9, .pace = one_second, .on_step = [](const step_record&) { throw 5; }});
    REQUIRE(seen.report.failure);
    CHECK(*seen.report.failure
          == error{errc::user_code, "on_step threw something that is no std::exception"});
  }

  TEST_CASE("a hook that has thrown hears of the end only, and others hear of all") {
    struct counter : session_hook {
      void after_step(const session_control&, const step_record&) override {
        ++steps;
        if (throws) throw std::runtime_error{"no room"};
      }

      void end(const job_report&) override { ++ends; }

      bool throws = false;
      int steps = 0;
      int ends = 0;
    };

    auto thrower = std::make_shared<counter>(), other = std::make_shared<counter>();
    thrower->throws = true;
    std::vector<std::string> stops;
    hook_list hooks{{thrower, other}, session_control{[&](const std::string& reason) {
                      stops.push_back(reason);
                      REQUIRE(hooks.failure());
                      CHECK(hooks.failure()->throw_site.empty()); // it is looked for later
                    }}};
    for (uint64_t step : {1, 2})
      hooks.after_step({.step = step});
    hooks.end({});
    CHECK(stops == std::vector<std::string>{"a hook failed: no room"});
    CHECK(*hooks.failure() == error{errc::user_code, "no room"});
    CHECK(thrower->steps == 1);
    CHECK(thrower->ends == 1);
    CHECK(other->steps == 2);
    CHECK(other->ends == 1);
  }

  TEST_CASE("a function that is told of steps and has thrown is not called again") {
    hook_list hooks{{}, session_control{[](const std::string&) {}}};
    int calls = 0;
    for (int step : {1, 2})
      hooks.call("on_step", &calls, [&] {
        ++calls;
        throw failure{{errc::resource, fmt::format("no room for step {}", step)}};
      });
    CHECK(calls == 1);
    CHECK(*hooks.failure() == error{errc::resource, "no room for step 1"});
  }

  TEST_CASE("cancel ends a straggler's computing at once, and names it") {
    small_job job{{2, 3, sync_policy::cancel}};
    int straggled = 0;
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      if (context.replica_id_in_sync_group() == 1) ++straggled;
      co_await giving;
    };
    auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 1 ? 1h : 1s; };
    auto seen = job.run(step, {.steps = 5, .pace = pace});
    CHECK(seen.seconds() == std::vector<double>(5, 1));
    for (const auto& step : seen.steps) {
      CHECK(replicas_of(step.cancelled) == replica_list{1});
      CHECK(replicas_of(step.accepted) == replica_list{0, 2});
      CHECK(step.stale.empty());
    }
    CHECK(straggled == 5); // it began every step anew
    CHECK(job.world.now() == 5s);
  }

  TEST_CASE("a step function may look after itself when its step is cancelled") {
    small_job job{{1, 2, sync_policy::cancel}};
    int cleaned_up = 0;
    auto step = [&](replica_context& context) -> task<void> {
      auto giving = give(context, job.optimizer, job.weights, no_gradient);
      try {
        co_await giving;
      } catch (const failure& cancelled) {
        CHECK(cancelled.reason().code == errc::cancelled);
        if (context.replica_id_in_sync_group() == 1) ++cleaned_up;
        throw;
      }
    };
    auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 1 ? 1h : 1s; };
    auto seen = job.run(step, {.steps = 3, .pace = pace});
    CHECK(cleaned_up == 3);
    CHECK(seen.report.lost.empty());
  }

  TEST_CASE("latest_token lets a straggler finish, and drops what it gives") {
    small_job job{{2, 3, sync_policy::latest_token}};
    auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 1 ? 2400ms : 1s; };
    auto seen = job.run_idle({.steps = 6, .pace = pace});
    CHECK(seen.seconds() == std::vector<double>(6, 1));
    REQUIRE(seen.stale_count() == 2); // after 2.4 s and 4.8 s
    REQUIRE(replicas_of(seen.steps[2].stale) == replica_list{1});
    CHECK(seen.steps[2].stale[0].staleness == 2);
    REQUIRE(replicas_of(seen.steps[4].stale) == replica_list{1});
    CHECK(seen.steps[4].stale[0].local_step == 2);
  }

  TEST_CASE("more gradients than replicas come from replicas that give several") {
    small_job job{{6, 2}};
    auto seen = job.run_idle({.steps = 4, .pace = one_second});
    REQUIRE(seen.steps.size() == 4);
    for (const auto& step : seen.steps) {
      CHECK(step.accepted.size() == 6);
      auto replicas = replicas_of(step.accepted);
      CHECK(std::ranges::count(replicas, 0U) == 3);
      CHECK(std::ranges::count(replicas, 1U) == 3);
    }
    CHECK(seen.steps[0].ended == 3s);
  }

  TEST_CASE("a job runs in a threads world, with stragglers and evaluation") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      std::atomic<int> evaluated = 0;
      small_job job{world::threads({.threads = 2}), {3, 4, policy}};
      evaluation evaluation{10, [](std::span<const tensor>) { return 1.0; },
                            [&](uint64_t, double) { ++evaluated; }};
      auto pace = [](uint32_t replica, uint64_t, job_time) { return replica == 3 ? 1ms : 0ms; };
      auto seen = job.run_idle({.steps = 60, .pace = pace, .evaluation = evaluation});
      CHECK(seen.report.step == 60);
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.report.lost.empty());
      REQUIRE(seen.steps.size() == 60);
      for (const auto& step : seen.steps)
        CHECK(step.accepted.size() >= 3);
      CHECK(evaluated > 0);
    }
  }
}

} // namespace training_test
