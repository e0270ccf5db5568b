// SPDX-License-Identifier: Apache-2.0
// Goal: a function runs on every replica, gets its own of what is distributed, and what it returns
// is put together again. Method: all strategies, both worlds.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>

#include <atomic>

namespace run_test {

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("strategies/contexts/run") {
  TEST_CASE("each replica knows its index and how many there are") {
    for_every_strategy([](strategy& strategy) {
      auto ids = strategy.run([](replica_context& context) {
        return std::pair{context.replica_id_in_sync_group(), context.num_replicas_in_sync()};
      });
      auto own = strategy.experimental_local_results(ids.first);
      REQUIRE(own.size() == strategy.num_replicas_in_sync());
      for (uint32_t i = 0; i < own.size(); ++i) {
        CHECK(own[i] == i);
        CHECK(ids.second[i] == strategy.num_replicas_in_sync());
      }
    });
  }

  TEST_CASE("a merge_call runs the function of replica 0 once, with the arguments of all") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        double sum = 0;
        for (int round = 1; round <= 3; ++round) {
          auto add = [](cross_replica_context& cross, distributed_value<double> mine) {
            double total = 0;
            for (auto each : mine.local_results())
              total += each;
            return std::pair{total, cross.num_replicas_in_sync()};
          };
          auto merging = context.merge_call(add, 1.0 * round + context.replica_id_in_sync_group());
          auto [total, count] = co_await merging;
          sum += total + count;
        }
        co_return sum;
      });
      auto n = strategy.num_replicas_in_sync();
      auto expected = 3.0 * n + 6.0 * n + 3.0 * n * (n - 1) / 2;
      for (uint32_t i = 0; i < n; ++i)
        CHECK(results[i] == expected);
    });
  }

  TEST_CASE("a function that returns nothing, or a coroutine that does not wait, is run as well") {
    for_every_strategy([](strategy& strategy) {
      std::atomic<uint32_t> runs = 0;
      strategy.run([&runs](replica_context&) { ++runs; });
      strategy.run([&runs](replica_context&) -> task<void> {
        ++runs;
        co_return;
      });
      CHECK(runs == 2 * strategy.num_replicas_in_sync());
    });
  }

  TEST_CASE("each replica gets its own of distributed arguments, wherever they stand") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto own = strategy.experimental_distribute_values_from_function([](value_context context) {
        return 10.0 * context.replica_id_in_sync_group + context.num_replicas_in_sync;
      });
      std::map<std::string, std::vector<distributed_value<double>>> nest{{"a", {own, own}}};
      auto results = strategy.run(
        [](replica_context&, double mine, const std::map<std::string, std::vector<double>>& map,
           std::pair<int, double> mixed) {
          return mine == mixed.second && map.at("a") == numbers{mine, mine} ? mixed.first + mine
                                                                            : -1.0;
        },
        own, nest, std::pair{1000, own});
      for (uint32_t i = 0; i < n; ++i)
        CHECK(results[i] == 1000 + 10.0 * i + n);
    });
  }

  TEST_CASE("variables go in and come out as they are") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(1));
      auto same = strategy.run([](replica_context&, const variable& own) { return own; }, weights);
      CHECK(same == weights);
    });
  }

  TEST_CASE("each replica may change its arguments for itself") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run(
        [](replica_context& context, numbers list) {
          list.push_back(context.replica_id_in_sync_group());
          return static_cast<double>(list.size());
        },
        numbers{1, 2});
      for (auto each : strategy.experimental_local_results(results))
        CHECK(each == 3);
    });
  }

  TEST_CASE("a value for fewer replicas is refused before anything runs") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(3)}};
    auto of_two = distributed_value<int>::per_replica({1, 2});
    auto has_run = false;
    CHECK(refusal_of(
            [&] { strategy.run([&has_run](replica_context&, int) { has_run = true; }, of_two); })
          == error{errc::invalid_argument,
                   "replica 2 has no part of a value of 2 replicas; a value goes only to the "
                   "strategy that it was made for"});
    CHECK(!has_run);
  }

  TEST_CASE("replicas that return other structures are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    CHECK(refusal_of([&] {
            static_cast<void>(strategy.run([](replica_context& context) {
              return std::vector<int>(context.replica_id_in_sync_group());
            }));
          })
          == error{errc::invalid_argument,
                   "replica 1 has a vector of 1, replica 0 has a vector of 0; the values of all "
                   "replicas must have one structure"});
  }

  TEST_CASE("results are listed by replica, and so is what is the same for all") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto ids = strategy.run([](replica_context& context) {
        return std::pair{1.0 * context.replica_id_in_sync_group(), std::vector{7}};
      });
      auto nests = strategy.experimental_local_results(ids);
      REQUIRE(nests.size() == n);
      CHECK(nests[n - 1] == std::pair{n - 1.0, std::vector{7}});
      CHECK(strategy.experimental_local_results(5) == std::vector{5});
      CHECK(strategy.experimental_local_results(numbers{1, 2}) == std::vector<numbers>{{1, 2}});
      auto shared = scalar(1);
      auto same = strategy.run([shared](replica_context&) { return shared; });
      CHECK(same.is_mirrored());
      CHECK(strategy.experimental_local_results(same).size() == n);
    });
  }

  TEST_CASE("an exception of a replica comes out, of whatever type") {
    for_every_strategy([](strategy& strategy) {
      CHECK_THROWS_WITH_AS(
        strategy.run([](replica_context&) -> int { throw std::domain_error{"mine"}; }), "mine",
        std::domain_error);
      CHECK_THROWS_AS(strategy.run([](replica_context&) { throw 5; }), int);
      CHECK(strategy.run([](replica_context&) { return 1; })[0] == 1);
    });
  }

  TEST_CASE("work that returns nothing can be awaited, too") {
    for_every_strategy([](strategy& strategy) {
      auto done = strategy.run([](replica_context& context) -> task<int> {
        auto sum = std::make_shared<int>(1);
        auto computing = context.compute([sum](std::stop_token) { *sum += 2; });
        co_await computing;
        co_return *sum;
      });
      for (auto each : strategy.experimental_local_results(done))
        CHECK(each == 3);
    });
  }

  TEST_CASE("work that throws in `compute` fails its replica") {
    for_every_strategy([](strategy& strategy) {
      CHECK_THROWS_WITH_AS(strategy.run([](replica_context& context) -> task<void> {
        auto computing
          = context.compute([](std::stop_token) -> int { throw std::domain_error{"mine"}; });
        static_cast<void>(co_await computing);
      }),
                           "mine", std::domain_error);
    });
  }

  TEST_CASE("each replica draws numbers of its own, the same in every world") {
    numbers first;
    for_every_strategy([&first](strategy& strategy) {
      auto draw = [](replica_context& context) {
        random_stream draw{context.random("test")};
        return draw.normal();
      };
      auto own = strategy.experimental_local_results(strategy.run(draw));
      CHECK(strategy.experimental_local_results(strategy.run(draw)) != own); // a run has its own
      if (first.empty() || own.size() > first.size()) first.resize(own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        if (first[i] == 0) first[i] = own[i];
        CHECK(first[i] == own[i]);
        if (i > 0) CHECK(own[i] != own[0]);
      }
    });
  }

  TEST_CASE("a replica knows its device and its strategy") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {{"CPU:3", "/device:CPU:1"}}};
    auto devices = strategy.run([&strategy](replica_context& context) {
      return &context.strategy() == &strategy ? context.device() : "";
    });
    CHECK(devices.local_results() == std::vector<std::string>{"cpu:3", "cpu:1"});
  }

  TEST_CASE("runs leave no actors behind") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(3)}};
    strategy.run([](replica_context&) {});
    auto before = world.system().registry().running();
    for (int i = 0; i < 10; ++i)
      strategy.run([](replica_context& context) -> task<void> {
        auto reducing = context.all_reduce(reduce_op::sum, 1.0);
        static_cast<void>(co_await reducing);
      });
    CHECK(world.system().registry().running() <= before);
  }

  TEST_CASE("an empty function is refused by the name of its call") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto refused = [](const auto& call) {
      auto reason = refusal_of(call);
      CHECK(reason.code == errc::invalid_argument);
      return reason.message;
    };
    CHECK(refused([&] { strategy.run(std::function<int(replica_context&)>{}); })
          == "a run on all replicas was given an empty function");
    int (*no_function)(replica_context&) = nullptr;
    CHECK(refused([&] { strategy.run(no_function); })
          == "a run on all replicas was given an empty function");
    CHECK(refused([&] { strategy.cross_replica(std::function<int(cross_replica_context&)>{}); })
          == "cross_replica was given an empty function");
    CHECK(refused([&] {
            strategy.run([](replica_context& context) -> task<void> {
              auto merging = context.merge_call(std::function<int(cross_replica_context&)>{});
              co_await merging;
            });
          })
          == "merge_call was given an empty function");
    CHECK(refused([&] {
            strategy.run([](replica_context& context) -> task<void> {
              auto computing = context.compute(std::function<int(std::stop_token)>{});
              co_await computing;
            });
          })
          == "compute was given an empty function");
  }

  TEST_CASE("a parameter server strategy does not run a function on all replicas at once") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    CHECK(refusal_of([&] { strategy.run([](replica_context&) {}); })
          == error{errc::unimplemented,
                   "a parameter_server strategy does not `run` a function on all replicas at once; "
                   "give it to `train`"});
  }
}

} // namespace run_test
