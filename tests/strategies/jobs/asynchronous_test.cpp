// SPDX-License-Identifier: Apache-2.0
// Goal: asynchronous jobs train with every gradient, once, in any world, and outlive their
// replicas. Method: gradients of -1, so that a variable counts its updates; the ledger.
#include "tests/strategies/small_job.hpp"

namespace asynchronous_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::array asynchronous_policies{sync_policy::k_async, sync_policy::k_batch_async,
                                           sync_policy::ssp};

tensor minus_one() {
  tensor result{dtype::f64, {1}};
  result.mutable_values<double>()[0] = -1;
  return result;
}

} // namespace

TEST_SUITE("strategies/jobs/asynchronous") {
  TEST_CASE("with threads every update is of as many gradients as it needs, for each variable") {
    for (auto policy : asynchronous_policies) {
      CAPTURE(to_string(policy));
      uint32_t needed = policy == sync_policy::ssp ? 1 : 3;
      auto world = world::threads({.threads = 2});
      parameter_server_strategy strategy{world, {.replicas = 8}};
      std::vector<variable> variables;
      for (const auto* name : {"a", "b", "c"})
        variables.push_back(strategy.make_variable(name, zeros({1}, dtype::f64)));
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {needed, 8, policy}};
      auto step = [=](replica_context& context) -> task<void> {
        auto computing = context.compute([](std::stop_token) { return minus_one(); });
        auto computed = co_await computing;
        std::vector<gradient_and_variable> gradients;
        for (const auto& variable : variables)
          gradients.push_back({computed, variable});
        auto applying = optimizer.apply_gradients(context, gradients);
        auto outcome = co_await applying;
        if (outcome.accepted != 3 || outcome.stale != 0)
          throw failure{{errc::user_code, "a gradient was dropped"}};
      };
      auto seen = play(strategy, optimizer, step, {.steps = 100});
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.report.lost.empty());
      CHECK(seen.steps.size() == 100);
      CHECK(seen.stale_count() == 0);
      // Gradients with parts in different updates at the end may be missing.
      CHECK(seen.accepted_count() <= 100 * needed);
      CHECK(seen.accepted_count() + 16 >= 100 * needed);
      for (const auto& variable : variables)
        CHECK(strategy.read(variable).values<double>()[0] == 100);
    }
  }

  TEST_CASE("however gradients for many variables overtake each other, k_async goes on") {
    auto world = world::threads({.threads = 2});
    parameter_server_strategy strategy{world, {.replicas = 4}};
    std::vector<variable> variables;
    for (int i = 0; i < 12; ++i)
      variables.push_back(strategy.make_variable(fmt::format("v{}", i), zeros({1}, dtype::f64)));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {3, 4, sync_policy::k_async}};
    auto step = [=](replica_context& context) -> task<void> {
      std::vector<gradient_and_variable> gradients;
      for (size_t i = 0; i < variables.size(); ++i) // each replica in another order
        gradients.push_back(
          {minus_one(), variables[(i + 3 * context.replica_id_in_sync_group()) % 12]});
      auto applying = optimizer.apply_gradients(context, gradients);
      co_await applying;
    };
    auto seen = play(strategy, optimizer, step, {.steps = 300});
    CHECK_FALSE(seen.report.failure);
    CHECK(seen.steps.size() == 300);
    for (const auto& variable : variables)
      CHECK(strategy.read(variable).values<double>()[0] == 300);
  }

  TEST_CASE("a replica that dies holds up no other") {
    for (auto policy : asynchronous_policies) {
      CAPTURE(to_string(policy));
      small_job job{{1, 3, policy}};
      auto step = [&](replica_context& context) -> task<void> {
        if (context.replica_id_in_sync_group() == 1 && context.iteration() == 4)
          throw std::runtime_error{"it is gone"};
        auto giving = give(context, job.optimizer, job.weights, minus_one());
        co_await giving;
      };
      auto seen = job.run(step, {.steps = 60, .pace = one_second});
      CHECK_FALSE(seen.report.failure);
      REQUIRE(seen.report.lost.size() == 1);
      CHECK(seen.report.lost[0].replica == 1);
      CHECK(seen.steps.size() == 60);
      CHECK(seen.steps.back().ended == 28s); // four gradients of replica 1, 28 of each other
    }
  }

  TEST_CASE("under k_async a job ends when too few are left to make an update") {
    small_job job{{2, 2, sync_policy::k_async}};
    auto step = [&](replica_context& context) -> task<void> {
      if (context.replica_id_in_sync_group() == 1 && context.iteration() == 4)
        throw std::runtime_error{"it is gone"};
      auto giving = give(context, job.optimizer, job.weights, minus_one());
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 60, .pace = one_second});
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message.find("step 5 needs 2 gradients, but 1 of 2 replicas") == 0);
  }

  TEST_CASE("a replica reads what its own gradient came to, where it waits for it") {
    small_job job{{1, 4, sync_policy::k_batch_async}};
    auto step = [&](replica_context& context) -> task<void> {
      auto reading = context.read(job.weights);
      auto value = co_await reading;
      CHECK(value.values<double>()[0] >= static_cast<double>(context.local_step()));
      auto giving = give(context, job.optimizer, job.weights, minus_one());
      co_await giving;
    };
    auto seen = job.run(step, {.steps = 40, .pace = one_second});
    CHECK(job.values() == std::vector<double>{40});
    uint64_t staleness = 0;
    for (const auto& one : seen.steps)
      staleness += one.accepted[0].staleness;
    CHECK(staleness
          == 3 * 40 - (3 + 2 + 1)); // all but the first three saw those of the other three
  }
}

} // namespace asynchronous_test
