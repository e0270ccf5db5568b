// SPDX-License-Identifier: Apache-2.0
// Goal: a process that is missing, gone or different ends the work of all with a line that names
// it, and none waits for ever. Method: processes played by threads, one of which misbehaves.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace multi_worker_failure_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Programs of two processes with a replica each.
std::vector<error> play_two(const std::function<void(strategy&, uint32_t rank)>& program) {
  return play(2, [&](played_worker& worker) {
    multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
    program(strategy, worker.rank);
  });
}

bool says(const error& why, std::string_view part) {
  return why.message.find(part) != std::string::npos;
}

tensor reduced(strategy& strategy, const tensor& value) {
  auto results = strategy.run([value](replica_context& context) -> task<tensor> {
    auto reducing = context.all_reduce(reduce_op::sum, value);
    auto sum = co_await reducing;
    co_return sum;
  });
  return results.primary();
}

void check_both_named(const std::vector<error>& thrown, std::string_view first,
                      std::string_view second) {
  for (const auto& why : thrown) {
    CAPTURE(why.message);
    CHECK(why.code == errc::invalid_argument);
    CHECK(says(why, "worker:0"));
    CHECK(says(why, "worker:1"));
    CHECK(says(why, first));
    CHECK(says(why, second));
  }
}

} // namespace

TEST_SUITE("strategies/kinds/multi_worker_failure") {
  // ---- a process that is different ----

  TEST_CASE("processes that make other variables are told which") {
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       strategy.make_variable(rank == 0 ? "a" : "b", scalar(1));
                     }),
                     "variable 'a'", "variable 'b'");
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       strategy.make_variable("w", zeros({3 + rank}));
                     }),
                     "[3]", "[4]");
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       strategy.make_variable("w", zeros({3}),
                                              {.aggregation = rank == 0
                                                                ? variable_aggregation::sum
                                                                : variable_aggregation::mean});
                     }),
                     "SUM", "MEAN");
  }

  TEST_CASE("processes that reduce otherwise are told how") {
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       static_cast<void>(
                         strategy.reduce(rank == 0 ? reduce_op::sum : reduce_op::mean, scalar(1)));
                     }),
                     "reduce SUM", "reduce MEAN");
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       static_cast<void>(reduced(strategy, zeros({2, 1 + rank})));
                     }),
                     "[2, 1]", "[2, 2]");
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       static_cast<void>(
                         reduced(strategy, scalar(1, rank == 0 ? dtype::f32 : dtype::f64)));
                     }),
                     "f32", "f64");
  }

  TEST_CASE("processes that bring the gradients of other variables are told so") {
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       std::vector<variable> both{strategy.make_variable("a", zeros({2})),
                                                  strategy.make_variable("b", zeros({2}))};
                       optimizer optimizer{rules::sgd{.learning_rate = 1}};
                       strategy.run([=](replica_context& context) -> task<void> {
                         auto applying = optimizer.apply_gradients(context, zeros({2}), both[rank]);
                         co_await applying;
                       });
                     }),
                     "gradient of a", "gradient of b");
  }

  TEST_CASE("processes that name different numbers of contributors are told so") {
    check_both_named(play_two([](strategy& strategy, uint32_t rank) {
                       auto weights = strategy.make_variable("w", zeros({2}));
                       optimizer optimizer{rules::sgd{.learning_rate = 1}, {reduce_op::mean}};
                       strategy.run([=](replica_context& context) -> task<void> {
                         std::vector<gradient_and_variable> own{{zeros({2}), weights}};
                         auto applying = optimizer.apply_gradients(context, own, 1 + rank);
                         co_await applying;
                       });
                     }),
                     "gradient by 1 contributors", "gradient by 2 contributors");
  }

  TEST_CASE("processes that reduce nests of other structures are told of both") {
    using metrics = std::map<std::string, double>;
    auto reduce = [](strategy& strategy, auto own) {
      strategy.run([own](replica_context& context) -> task<void> {
        auto reducing = context.all_reduce(reduce_op::sum, own);
        static_cast<void>(co_await reducing);
      });
    };
    check_both_named(play_two([&](strategy& strategy, uint32_t rank) {
                       reduce(strategy, rank == 0 ? metrics{{"accuracy", 1}, {"loss", 2}}
                                                  : metrics{{"count", 10}, {"loss", 20}});
                     }),
                     "a map of 'accuracy' 'loss'", "a map of 'count' 'loss'");
    check_both_named(play_two([&](strategy& strategy, uint32_t rank) {
                       using optional = std::optional<double>;
                       reduce(strategy, rank == 0 ? std::pair{optional{1}, optional{}}
                                                  : std::pair{optional{}, optional{1}});
                     }),
                     "something, nothing", "nothing, something");
    check_both_named(
      play_two([](strategy& strategy, uint32_t rank) {
        std::map<std::string, tensor> own{{rank == 0 ? "accuracy" : "loss", scalar(1)}};
        static_cast<void>(strategy.reduce(reduce_op::sum, own));
      }),
      "a map of 'accuracy'", "a map of 'loss'");
  }

  TEST_CASE("long structures that differ only at their end are told apart") {
    auto thrown = play_two([](strategy& strategy, uint32_t rank) {
      std::map<std::string, tensor> own;
      for (int i = 0; i < 100; ++i)
        own.emplace("metric " + std::to_string(i), scalar(1));
      own.emplace(rank == 0 ? "x" : "y", scalar(1));
      static_cast<void>(strategy.reduce(reduce_op::sum, own));
    });
    for (const auto& why : thrown) {
      CHECK(why.code == errc::invalid_argument);
      CHECK(says(why, "checksum"));
      CHECK(why.message.size() < 1000);
    }
  }

  TEST_CASE("a process that is in another call is named with both calls") {
    auto thrown = play_two([](strategy& strategy, uint32_t rank) {
      if (rank == 0)
        static_cast<void>(strategy.reduce(reduce_op::sum, scalar(1)));
      else
        strategy.make_variable("w", scalar(1));
    });
    check_both_named(thrown, "reduce SUM", "initial value of variable 'w'");
  }

  TEST_CASE("after a call that has failed all fail") {
    auto thrown = play_two([](strategy& strategy, uint32_t rank) {
      auto first = refusal_of([&] { static_cast<void>(reduced(strategy, zeros({1 + rank}))); });
      CHECK(first.code == errc::invalid_argument);
      CHECK(refusal_of([&] { static_cast<void>(reduced(strategy, zeros({1}))); }) == first);
      CHECK(refusal_of([&] { strategy.make_variable("w", scalar(1)); }) == first);
    });
    CHECK(thrown == std::vector<error>(2));
  }

  // ---- a run that fails, and is caught ----

  TEST_CASE("a run that one process ends before the others' call mixes with no other run") {
    for (auto throws : {true, false}) {
      auto thrown = play_two([throws](strategy& strategy, uint32_t rank) {
        static_cast<void>(reduced(strategy, scalar(1)));
        auto step = [throws, rank](replica_context& context) -> task<void> {
          if (rank == 1 && throws) throw failure{{errc::out_of_range, "a bad batch"}};
          if (rank == 1) co_return;
          auto reducing = context.all_reduce(reduce_op::sum, scalar(1));
          static_cast<void>(co_await reducing);
        };
        auto why = refusal_of([&] { strategy.run(step); });
        if (rank == 1) CHECK(why.code == (throws ? errc::out_of_range : errc::none));
        static_cast<void>(reduced(strategy, scalar(1)));
      });
      check_both_named(thrown, "all_reduce SUM (run 2)", "all_reduce SUM (run 3)");
    }
  }

  TEST_CASE(
    "a reduction that one process leaves out after its run has failed mixes with no later one") {
    auto thrown = play_two([](strategy& strategy, uint32_t rank) {
      for (int i = 0; i < 3; ++i) {
        auto step = [rank, i](replica_context&) {
          if (rank == 1 && i == 1) throw failure{{errc::out_of_range, "a bad batch"}};
          return scalar(1);
        };
        try {
          auto losses = strategy.run(step);
          static_cast<void>(strategy.reduce(reduce_op::sum, losses));
        } catch (const failure& failed) {
          if (failed.reason().code != errc::out_of_range) throw;
        }
      }
    });
    check_both_named(thrown, "reduce SUM (run 2)", "reduce SUM (run 3)");
  }

  TEST_CASE("processes that catch the same failure of a run go on") {
    auto thrown = play_two([](strategy& strategy, uint32_t) {
      auto fails_in_merge = [](replica_context& context) -> task<void> {
        auto merge = [](cross_replica_context&, distributed_value<tensor>) -> tensor {
          throw failure{{errc::out_of_range, "no sum today"}};
        };
        auto merging = context.merge_call(merge, scalar(1));
        static_cast<void>(co_await merging);
      };
      auto fails = [](replica_context&) { throw failure{{errc::out_of_range, "a bad batch"}}; };
      CHECK(refusal_of([&] { strategy.run(fails_in_merge); }).message == "no sum today");
      CHECK(refusal_of([&] { strategy.run(fails); }).message == "a bad batch");
      CHECK(numbers_of(reduced(strategy, scalar(1))) == numbers{2});
    });
    CHECK(thrown == std::vector<error>(2));
  }

  // ---- a process that is gone, or late ----

  TEST_CASE("a process that ends amid the others is named at once") {
    auto thrown = play(3, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(2)};
      static_cast<void>(reduced(strategy, scalar(1)));
      if (worker.rank == 1) throw failure{{errc::out_of_range, "has enough"}};
      for (int i = 0; i < 3; ++i) { // not when a time is over, which would have another code
        auto why = refusal_of([&] { static_cast<void>(reduced(strategy, scalar(1))); });
        CAPTURE(why.message);
        CHECK(why.code == errc::unavailable);
        CHECK(says(why, "worker:1"));
      }
    });
    CHECK(thrown == std::vector<error>{{}, {errc::out_of_range, "has enough"}, {}});
  }

  TEST_CASE("a process whose connection is lost is named") {
    std::latch cut{2};
    auto thrown = play(2, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      static_cast<void>(reduced(strategy, scalar(1)));
      if (worker.rank == 0) worker.network.direct.lose(1, "has no cable");
      cut.arrive_and_wait();
      auto why = refusal_of([&] { static_cast<void>(reduced(strategy, scalar(1))); });
      CAPTURE(why.message);
      CHECK(why.code == errc::unavailable);
      CHECK(says(why, worker.rank == 0 ? "worker:1" : "worker:0"));
    });
    CHECK(thrown == std::vector<error>(2));
  }

  TEST_CASE("a process that does not come to a call is named when the time is over") {
    // That time holds for the making of a strategy, too, and is given again if it was too short.
    std::vector<error> thrown;
    for (auto seconds = 0.3; seconds < 30; seconds *= 4) {
      std::latch late{2};
      thrown = play(2, [&](played_worker& worker) {
        auto options = worker.options(1);
        if (worker.rank == 0) options.communication.timeout_seconds = seconds;
        std::optional<multi_worker_mirrored_strategy> strategy;
        auto refused = refusal_of([&] { strategy.emplace(worker.world, options); });
        if (strategy && worker.rank == 0) {
          auto why = refusal_of([&] { static_cast<void>(reduced(*strategy, scalar(1))); });
          CAPTURE(why.message);
          CHECK(why.code == errc::deadline_exceeded);
          CHECK(says(why, "worker:1"));
        }
        late.arrive_and_wait();
        if (!strategy) throw failure{refused};
      });
      if (thrown == std::vector<error>(2)) break;
    }
    CHECK(thrown == std::vector<error>(2));
  }

  TEST_CASE("a call's own time wins over the strategy's") {
    const communication_options soon{.timeout_seconds = 0.2};
    auto in_replicas = [](strategy& strategy, auto call) {
      strategy.run([call](replica_context& context) -> task<void> {
        auto calling = call(context);
        co_await calling;
      });
    };
    auto value = distributed_value<gradient>::per_replica({scalar(1)});
    const std::vector<std::function<void(strategy&)>> calls{
      [&](strategy& strategy) {
        static_cast<void>(strategy.extended().batch_reduce_to(
          reduce_op::sum, {{value, destinations{"cpu:0"}}}, soon));
      },
      [&](strategy& strategy) {
        static_cast<void>(strategy.extended().reduce_to(reduce_op::sum, value, "cpu:0", soon));
      },
      [&](strategy& strategy) {
        in_replicas(strategy, [soon](replica_context& context) {
          return context.all_reduce(reduce_op::sum, scalar(1), soon);
        });
      },
      [&](strategy& strategy) {
        in_replicas(strategy, [soon](replica_context& context) {
          return context.all_gather(array({1}, {1}), 0, soon);
        });
      }};
    for (const auto& call : calls) {
      std::latch late{2};
      auto thrown = play(2, [&](played_worker& worker) {
        multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
        if (worker.rank == 0) {
          auto why = refusal_of([&] { call(strategy); });
          CAPTURE(why.message);
          CHECK(why.code == errc::deadline_exceeded);
          CHECK(says(why, "worker:1"));
        }
        late.arrive_and_wait();
      });
      CHECK(thrown == std::vector<error>(2));
    }
  }

  TEST_CASE("processes that gather values of different ranks are told of the ranks") {
    auto thrown = play(2, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      auto own = worker.rank == 0 ? array({2, 3}, {1, 2, 3, 4, 5, 6}) : array({4}, {1, 2, 3, 4});
      auto why = refusal_of([&] { static_cast<void>(strategy.gather(own, 0)); });
      CAPTURE(why.message);
      CHECK(why.code == errc::invalid_argument);
      CHECK(says(why, "replica 1 has a value of rank 1, of shape [4]"));
      CHECK(says(why, "replica 0 one of rank 2, of shape [2, 3]"));
      CHECK_FALSE(says(why, "order"));
    });
    CHECK(thrown == std::vector<error>(2));
  }

  TEST_CASE("a process that never begins is named") {
    auto thrown = play(2,
                       [](played_worker& worker) {
                         if (worker.rank == 1) return;
                         multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
                       },
                       {.start_deadline = std::chrono::milliseconds{300}});
    CAPTURE(thrown[0].message);
    CHECK(thrown[0].code != errc::none);
    CHECK(says(thrown[0], "worker:1"));
  }

  TEST_CASE("a merge function that fails in one process ends the run of the others") {
    auto thrown = play_two([](strategy& strategy, uint32_t rank) {
      strategy.run([rank](replica_context& context) -> task<void> {
        auto merge
          = [rank](cross_replica_context& all, distributed_value<tensor> value) -> task<tensor> {
          if (rank == 1) throw failure{{errc::out_of_range, "not this one"}};
          auto reducing = all.reduce_to(reduce_op::sum, value, "cpu:0");
          auto sum = co_await reducing;
          co_return sum.primary();
        };
        auto merging = context.merge_call(merge, scalar(1));
        auto merged = co_await merging;
      });
    });
    CHECK(thrown[1] == error{errc::out_of_range, "not this one"});
    CHECK(thrown[0].code == errc::unavailable);
    CHECK(says(thrown[0], "worker:1"));
  }

  // ---- what cannot be ----

  TEST_CASE("options that no strategy can have are refused before any process is waited for") {
    auto world = world::virtual_time();
    auto refusal = [&](multi_worker_mirrored_options options) {
      return refusal_of([&] { multi_worker_mirrored_strategy{world, std::move(options)}; });
    };
    CHECK(refusal({.devices = {}})
          == error{errc::invalid_argument,
                   "a multi_worker_mirrored strategy needs at least 1 replica"});
    CHECK(refusal({.devices = {"cpu:0", "cpu:0"}}).code == errc::invalid_argument);
    CHECK(refusal({.devices = {"tpu:0"}}).code == errc::invalid_argument);
    CHECK(refusal({.communication = {.bytes_per_pack = -1}})
          == error{errc::invalid_argument, "bytes_per_pack must be non-negative, not -1"});
    CHECK(refusal({.communication = {.implementation = communication_implementation::nccl}}).code
          == errc::unimplemented);
    CHECK(refusal({.deadline = job_time{0}}).code == errc::invalid_argument);
  }

  TEST_CASE("workers have to be those of the cluster") {
    auto thrown = play(2, [](played_worker& worker) {
      auto options = worker.options(1);
      options.workers
        = worker.rank == 0 ? std::vector<std::string>{} : std::vector<std::string>{"a", "b", "c"};
      multi_worker_mirrored_strategy strategy{worker.world, options};
    });
    CHECK(thrown[0]
          == error{errc::invalid_argument,
                   "a multi_worker_mirrored strategy was given a placement, but no workers; give "
                   "it those of the server"});
    CAPTURE(thrown[1].message);
    CHECK(thrown[1].code == errc::invalid_argument);
  }

  TEST_CASE("processes with other numbers of replicas are told so") {
    auto thrown = play(2, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1 + worker.rank)};
    });
    for (const auto& why : thrown) {
      CAPTURE(why.message);
      CHECK(why.code == errc::failed_precondition);
      CHECK(says(why, "worker:0"));
      CHECK(says(why, "worker:1"));
    }
  }

  TEST_CASE("calls that wait for other processes are awaited in merge functions") {
    auto thrown = play_two([](strategy& strategy, uint32_t) {
      auto seen = strategy.run([&strategy](replica_context& context) -> task<error> {
        auto merge = [&strategy](cross_replica_context&, distributed_value<tensor> value) {
          return refusal_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, value)); });
        };
        auto merging = context.merge_call(merge, scalar(1));
        auto why = co_await merging;
        co_return why;
      });
      CHECK(seen.primary().code == errc::wrong_context);
      CHECK(says(seen.primary(), "await reduce of the cross_replica_context"));
    });
    CHECK(thrown == std::vector<error>(2));
  }

  TEST_CASE("jobs of `train` are another strategy's") {
    auto thrown = play_two([](strategy& strategy, uint32_t) {
      strategy.make_variable("w", scalar(1));
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {2, 2}};
      auto step = [](replica_context&) -> task<void> { co_return; };
      auto why
        = refusal_of([&] { static_cast<void>(train(strategy, optimizer, step, {.steps = 1})); });
      CHECK(why.code == errc::unimplemented);
      CHECK(says(why, "call `train` without a"));
    });
    CHECK(thrown == std::vector<error>(2));
  }
}

} // namespace multi_worker_failure_test
