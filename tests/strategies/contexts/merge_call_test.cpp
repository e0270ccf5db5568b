// SPDX-License-Identifier: Apache-2.0
// Goal: replicas meet, one function runs for all of them, and one that does something else is named
// while no other hangs. Method: all strategies in both worlds; replicas that leave, throw, hang and
// call other functions.
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/refusal.hpp"
#include "tests/strategies/small_job.hpp"

#include <atomic>
#include <numeric>

namespace merge_call_test {

using namespace troupe;
using namespace troupe::test;

namespace {

double sum_of(cross_replica_context&, distributed_value<double> all) {
  auto values = all.local_results();
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double largest_of(cross_replica_context&, distributed_value<double> all) {
  auto values = all.local_results();
  return *std::max_element(values.begin(), values.end());
}

bool has(const error& refused, const std::string& part) {
  return refused.message.find(part) != std::string::npos;
}

/// Mirrored strategies on `count` devices, in both worlds.
void for_mirrored(uint32_t count, const std::function<void(strategy&)>& body,
                  job_time deadline = std::chrono::minutes{10}) {
  for (auto threads : {false, true}) {
    CAPTURE(threads);
    auto in = threads ? world::threads({.threads = 2}) : world::virtual_time();
    mirrored_strategy strategy{in, {.devices = cpu_devices(count), .deadline = deadline}};
    body(strategy);
  }
}

/// Never comes to an end, and holds no thread.
task<void> wait_for_ever(activity& host) {
  auto waiting = host.woken();
  static_cast<void>(co_await waiting);
}

} // namespace

TEST_SUITE("strategies/contexts/merge_call") {
  TEST_CASE("a plain function gets the arguments of all, in the order of replicas") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<std::vector<double>> {
        auto list = [](cross_replica_context&, distributed_value<double> all) {
          return std::pair{all.local_results(), 0};
        };
        auto merging = context.merge_call(list, 10.0 * context.replica_id_in_sync_group());
        auto result = co_await merging;
        co_return result.first;
      });
      for (uint32_t i = 0; i < strategy.num_replicas_in_sync(); ++i)
        CHECK(results[i][0] == 10.0 * i);
    });
  }

  TEST_CASE("the function runs once, that of replica 0") {
    for_every_strategy([](strategy& strategy) {
      std::atomic<int> runs = 0;
      auto whose = strategy.run([&runs](replica_context& context) -> task<uint32_t> {
        auto mine = [&runs, replica = context.replica_id_in_sync_group()](cross_replica_context&) {
          ++runs;
          return replica;
        };
        auto merging = context.merge_call(mine);
        auto result = co_await merging;
        co_return result;
      });
      for (auto each : strategy.experimental_local_results(whose))
        CHECK(each == 0);
      CHECK(runs == 1);
    });
  }

  TEST_CASE("each replica gets its own part of the result") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        auto deal = [](cross_replica_context& all) {
          std::vector<double> values;
          for (uint32_t i = 0; i < all.num_replicas_in_sync(); ++i)
            values.push_back(i + 0.5);
          return std::pair{distributed_value<double>::per_replica(values), 100.0};
        };
        auto merging = context.merge_call(deal);
        auto [mine, same] = co_await merging;
        co_return mine + same;
      });
      for (uint32_t i = 0; i < strategy.num_replicas_in_sync(); ++i)
        CHECK(results[i] == 100.5 + i);
    });
  }

  TEST_CASE("a function that returns nothing is waited for") {
    for_every_strategy([](strategy& strategy) {
      std::atomic<bool> is_done = false;
      auto seen = strategy.run([&is_done](replica_context& context) -> task<bool> {
        auto work = [&is_done](cross_replica_context&) { is_done = true; };
        auto merging = context.merge_call(work);
        co_await merging;
        co_return is_done.load();
      });
      for (auto each : strategy.experimental_local_results(seen))
        CHECK(each);
    });
  }

  TEST_CASE("a coroutine may wait, compute, read and change variables for all") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(5));
      auto results = strategy.run([weights](replica_context& context) -> task<numbers> {
        auto work = [weights](cross_replica_context& all) -> task<tensor> {
          auto computing = all.compute(1 << 20, [] { return 2.0; });
          auto two = co_await computing;
          auto adding = all.assign_add(weights, two);
          static_cast<void>(co_await adding);
          auto reading = all.read(weights);
          auto value = co_await reading;
          co_return value;
        };
        auto merging = context.merge_call(work);
        auto value = co_await merging;
        auto reading = context.read(weights);
        auto mine = co_await reading;
        co_return numbers{numbers_of(value)[0], numbers_of(mine)[0]};
      });
      for (const auto& each : strategy.experimental_local_results(results))
        CHECK(each == numbers{7, 7});
    });
  }

  TEST_CASE("variables and whole nests are arguments, too") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(1));
      auto results = strategy.run([weights](replica_context& context) -> task<double> {
        auto work = [](cross_replica_context&, const variable& target,
                       const std::map<std::string, std::vector<distributed_value<double>>>& nest) {
          return target.name() == "w" ? nest.at("a")[1].primary() : 0.0;
        };
        std::map<std::string, std::vector<double>> nest{{"a", {1.0, 2.0}}, {"b", {}}};
        auto merging = context.merge_call(work, weights, nest);
        auto result = co_await merging;
        co_return result;
      });
      CHECK(results[0] == 2);
    });
  }

  // ---- re-entrance ----

  TEST_CASE("a merge function may run replicas, which may meet in turn") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      auto results = strategy.run([](replica_context& context) -> task<double> {
        auto run_again = [](cross_replica_context& all) -> task<double> {
          auto inner_step = [](replica_context& inner) -> task<double> {
            auto merging = inner.merge_call(sum_of, 1.0);
            auto first = co_await merging;
            auto reducing = inner.all_reduce(reduce_op::sum, first);
            auto second = co_await reducing;
            co_return second;
          };
          auto running = all.call_for_each_replica(inner_step);
          auto inner = co_await running;
          co_return inner.primary();
        };
        auto merging = context.merge_call(run_again);
        auto result = co_await merging;
        auto once_more = context.merge_call(sum_of, result);
        auto sum = co_await once_more;
        co_return sum;
      });
      for (auto each : strategy.experimental_local_results(results))
        CHECK(each == double(n) * n * n);
    });
  }

  TEST_CASE("a failure in a run inside a merge function fails every replica outside") {
    for_every_strategy([](strategy& strategy) {
      auto refused = strategy.run([](replica_context& context) -> task<error> {
        auto run_again = [](cross_replica_context& all) -> task<double> {
          auto fail = [](replica_context&) -> double { throw failure{{errc::user_code, "inner"}}; };
          auto running = all.call_for_each_replica(fail);
          auto inner = co_await running;
          co_return inner.primary();
        };
        auto merging = refusal_in(context.merge_call(run_again));
        auto reason = co_await merging;
        co_return reason;
      });
      for (const auto& each : strategy.experimental_local_results(refused))
        CHECK(each == error{errc::user_code, "inner"});
    });
  }

  // ---- what goes wrong ----

  TEST_CASE("an exception of the function is thrown in every replica, and meeting goes on") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        auto fail = [](cross_replica_context&) -> double {
          throw failure{{errc::out_of_range, "no"}};
        };
        auto merging = refusal_in(context.merge_call(fail));
        auto reason = co_await merging;
        auto again
          = context.merge_call(sum_of, reason == error{errc::out_of_range, "no"} ? 1.0 : 0.0);
        auto sum = co_await again;
        co_return sum;
      });
      CHECK(results[0] == strategy.num_replicas_in_sync());
    });
  }

  TEST_CASE("an exception of the function comes out of run as it is") {
    for_every_strategy([](strategy& strategy) {
      CHECK_THROWS_WITH_AS(strategy.run([](replica_context& context) -> task<void> {
        auto fail = [](cross_replica_context&) { throw std::domain_error{"mine"}; };
        auto merging = context.merge_call(fail);
        co_await merging;
      }),
                           "mine", std::domain_error);
    });
  }

  TEST_CASE("a replica that returns while others wait ends the run, by name") {
    for_mirrored(3, [](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          if (context.replica_id_in_sync_group() == 1) co_return;
          auto merging = context.merge_call(sum_of, 1.0);
          static_cast<void>(co_await merging);
        });
      });
      CHECK(refused
            == error{errc::failed_precondition,
                     "Some replicas made a different number of merge_call() calls: replica 1 "
                     "returned, while replica 0, replica 2 wait in a merge_call"});
    });
  }

  TEST_CASE("a replica that meets once more than the others ends the run") {
    for_mirrored(3, [](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          auto times = context.replica_id_in_sync_group() == 2 ? 3 : 2;
          for (int i = 0; i < times; ++i) {
            auto merging = context.merge_call(sum_of, 1.0);
            static_cast<void>(co_await merging);
          }
        });
      });
      CHECK(refused.code == errc::failed_precondition);
      CHECK(has(refused, "replica 0, replica 1 returned, while replica 2 waits in a merge_call"));
    });
  }

  TEST_CASE("a replica that throws ends the run; its own exception comes out") {
    for_mirrored(3, [](strategy& strategy) {
      std::vector<error> told(3);
      CHECK_THROWS_WITH_AS(strategy.run([&told](replica_context& context) -> task<void> {
        auto replica = context.replica_id_in_sync_group();
        if (replica == 2) throw std::domain_error{"mine"};
        auto merging = refusal_in(context.merge_call(sum_of, 1.0));
        told[replica] = co_await merging;
        throw failure{told[replica]};
      }),
                           "mine", std::domain_error);
      CHECK(told[0] == error{errc::cancelled, "replica 2 failed: mine"});
      CHECK(told[1] == told[0]);
    });
  }

  TEST_CASE("the first of several replicas that fail is the culprit") {
    for_every_strategy([](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) {
          throw failure{{errc::user_code, std::to_string(context.replica_id_in_sync_group())}};
        });
      });
      CHECK(refused == error{errc::user_code, "0"});
    });
  }

  TEST_CASE("replicas that meet after the run was ended are told so at once") {
    for_mirrored(2, [](strategy& strategy) {
      auto count = std::make_shared<std::atomic<int>>(0);
      auto refused = refusal_of([&] {
        strategy.run([count](replica_context& context) -> task<void> {
          if (context.replica_id_in_sync_group() == 1) throw failure{{errc::user_code, "gone"}};
          for (int i = 0; i < 3; ++i) {
            auto merging = refusal_in(context.merge_call(sum_of, 1.0));
            auto reason = co_await merging;
            if (reason == error{errc::cancelled, "replica 1 failed: gone"}) ++*count;
          }
        });
      });
      CHECK(refused == error{errc::user_code, "gone"});
      CHECK(*count == 3);
    });
  }

  TEST_CASE("replicas that call different functions are refused, by name") {
    for_mirrored(3, [](strategy& strategy) {
      auto step = [](replica_context& context) -> task<void> {
        auto first = context.merge_call(sum_of, 1.0);
        static_cast<void>(co_await first);
        auto* function = context.replica_id_in_sync_group() == 2 ? largest_of : sum_of;
        auto second = context.merge_call(function, 1.0);
        static_cast<void>(co_await second);
      };
      CHECK(refusal_of([&] { strategy.run(step); })
            == error{errc::failed_precondition,
                     "replica 2 is in another merge_call than replica 0: its call number 2 is with "
                     "another function; all replicas have to make the same calls in the same "
                     "order"});
    });
  }

  TEST_CASE("a replica that reduces while another gathers is refused") {
    for_mirrored(2, [](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          auto reducing = context.replica_id_in_sync_group() == 0
                            ? context.all_reduce(reduce_op::sum, array({1}, {1}))
                            : context.all_gather(array({1}, {1}), 0);
          static_cast<void>(co_await reducing);
        });
      });
      CHECK(refused.code == errc::failed_precondition);
      CHECK(has(refused, "replica 1 is in another merge_call than replica 0"));
    });
  }

  TEST_CASE("replicas that reduce or gather unlike each other are refused") {
    for_mirrored(2, [](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          auto op = context.replica_id_in_sync_group() == 0 ? reduce_op::sum : reduce_op::mean;
          auto reducing = context.all_reduce(op, 1.0);
          static_cast<void>(co_await reducing);
        });
      });
      CHECK(refused
            == error{errc::failed_precondition,
                     "replica 1 reduces by MEAN, replica 0 by SUM; all replicas have to reduce "
                     "alike"});
      refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          auto axis = static_cast<int64_t>(context.replica_id_in_sync_group());
          auto gathering = context.all_gather(array({1, 1}, {1}), axis);
          static_cast<void>(co_await gathering);
        });
      });
      CHECK(refused
            == error{errc::failed_precondition,
                     "replica 1 gathers along axis 1, replica 0 along axis 0; all replicas have to "
                     "gather alike"});
    });
  }

  TEST_CASE("arguments of different structure are refused, by name") {
    for_mirrored(2, [](strategy& strategy) {
      auto refused = refusal_of([&] {
        strategy.run([](replica_context& context) -> task<void> {
          auto work = [](cross_replica_context&, const std::vector<distributed_value<double>>&) {};
          std::vector<double> mine(1 + context.replica_id_in_sync_group());
          auto merging = context.merge_call(work, mine);
          co_await merging;
        });
      });
      CHECK(refused
            == error{errc::failed_precondition,
                     "replica 1 brings a vector of 2 to merge_call number 1, replica 0 brings a "
                     "vector of 1; the arguments of all replicas must have one structure"});
    });
  }

  // ---- a replica that hangs ----

  TEST_CASE("a replica that hangs while others wait is named when the deadline is over") {
    for_mirrored(
      3,
      [](strategy& strategy) {
        std::atomic<int> told = 0;
        auto refused = refusal_of([&] {
          strategy.run([&told](replica_context& context) -> task<void> {
            if (context.replica_id_in_sync_group() == 1) {
              std::suspend_always for_ever;
              co_await for_ever;
            }
            auto merging = refusal_in(context.merge_call(sum_of, 1.0));
            auto reason = co_await merging;
            if (reason.code == errc::deadline_exceeded) ++told;
          });
        });
        CHECK(
          refused
          == error{errc::deadline_exceeded,
                   "a run on 3 replicas is not over after 0.2 s: still computing: replica 1; in "
                   "a merge_call: replica 0, replica 2"});
        CHECK(told == 2);
        auto after = strategy.run([](replica_context&) { return 1; });
        CHECK(after[2] == 1); // the next run knows nothing of it
      },
      std::chrono::milliseconds{200});
  }

  TEST_CASE("a merge function that hangs is named when the deadline is over") {
    for_mirrored(
      2,
      [](strategy& strategy) {
        std::atomic<int> told = 0;
        auto refused = refusal_of([&] {
          strategy.run([&told](replica_context& context) -> task<void> {
            auto hang = [](cross_replica_context& all) -> task<int> {
              auto hanging = wait_for_ever(all.host());
              co_await hanging;
              co_return 1;
            };
            auto merging = refusal_in(context.merge_call(hang));
            auto reason = co_await merging;
            if (reason.code == errc::deadline_exceeded) ++told;
          });
        });
        CHECK(refused
              == error{errc::deadline_exceeded,
                       "a run on 2 replicas is not over after 0.2 s: the merge function of replica "
                       "0 is not over"});
        CHECK(told == 1);
      },
      std::chrono::milliseconds{200});
  }

  TEST_CASE("a run inside a merge function that hangs ends with the run around it") {
    for_mirrored(
      2,
      [](strategy& strategy) {
        auto refused = refusal_of([&] {
          strategy.run([](replica_context& context) -> task<void> {
            auto run_again = [](cross_replica_context& all) -> task<int> {
              auto hang = [](replica_context& inner) -> task<int> {
                std::suspend_always for_ever;
                if (inner.replica_id_in_sync_group() == 1) co_await for_ever;
                co_return 1;
              };
              auto running = all.call_for_each_replica(hang);
              static_cast<void>(co_await running);
              co_return 1;
            };
            auto merging = context.merge_call(run_again);
            static_cast<void>(co_await merging);
          });
        });
        CHECK(refused.code == errc::deadline_exceeded);
        CHECK(has(refused, "the merge function of replica 0 is not over"));
      },
      std::chrono::milliseconds{200});
  }

  TEST_CASE("a cross-replica function that hangs ends with the deadline") {
    for_mirrored(
      2,
      [](strategy& strategy) {
        auto refused = refusal_of([&] {
          strategy.cross_replica(
            [](cross_replica_context& all) { return wait_for_ever(all.host()); });
        });
        CHECK(
          refused
          == error{errc::deadline_exceeded,
                   "a cross-replica function of the mirrored strategy is not over after 0.2 s"});
      },
      std::chrono::milliseconds{200});
  }

  TEST_CASE("a deadline that is none is refused") {
    auto world = world::virtual_time();
    CHECK(refusal_of([&] {
            mirrored_strategy{world, {.deadline = job_time{0}}};
          })
          == error{errc::invalid_argument,
                   "the deadline of a mirrored strategy is 0 s; it must be positive"});
  }

  TEST_CASE("replicas that train each at its own pace do not meet") {
    small_job job{{.replicas_to_aggregate = 2, .total_num_replicas = 2}};
    std::vector<error> refused;
    auto step = [&refused, &job](replica_context& context) -> task<void> {
      auto reducing = refusal_in(context.all_reduce(reduce_op::sum, 1.0));
      auto reason = co_await reducing;
      refused.push_back(reason);
      auto giving = give(context, job.optimizer, job.weights, zeros({1}, dtype::f64));
      static_cast<void>(co_await giving);
    };
    static_cast<void>(job.run(step, {.steps = 1}));
    REQUIRE(refused.size() >= 2);
    for (const auto& reason : refused)
      CHECK(reason
            == error{errc::wrong_context,
                     "merge_call needs replicas that wait for each other, but in `train` each goes "
                     "at its own pace; run the function by `strategy.run` of a strategy that "
                     "has it"});
  }

  TEST_CASE("a thousand replicas meet many times") {
    for_mirrored(1000, [](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        double sum = 0;
        for (int round = 0; round < 5; ++round) {
          auto merging = context.merge_call(sum_of, 1.0 * context.replica_id_in_sync_group());
          sum += co_await merging;
        }
        co_return sum;
      });
      for (auto each : strategy.experimental_local_results(results))
        REQUIRE(each == 5 * 499500.0);
    });
  }
}

} // namespace merge_call_test
