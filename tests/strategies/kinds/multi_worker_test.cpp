// SPDX-License-Identifier: Apache-2.0
// Goal: replicas in several processes are to their programs what replicas in one process are, and
// a process that is missing, gone or different is named. Method: processes played by threads; the
// same small programs for splits of four replicas.
#include "kernels/math/cast.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/data/dataset_from_tensors.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/metrics.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

#include <map>
#include <mutex>
#include <numeric>

namespace multi_worker_test {

using namespace troupe;
using namespace troupe::test;

namespace {

void check_well(const std::vector<error>& thrown) {
  for (const auto& why : thrown)
    CHECK_MESSAGE(why.code == errc::none, why.message);
}

/// Runs a program in `processes` with `replicas` each; nothing may be refused.
void run_in(uint32_t processes, uint32_t replicas,
            const std::function<void(strategy&, uint32_t rank)>& program) {
  auto thrown = play(processes, [&](played_worker& worker) {
    multi_worker_mirrored_strategy strategy{worker.world, worker.options(replicas)};
    program(strategy, worker.rank);
  });
  check_well(thrown);
}

/// Runs a program with all splits of four replicas; nothing may be refused.
void for_every_split(const std::function<void(strategy&, uint32_t rank)>& program) {
  for (uint32_t processes : {1U, 2U, 4U}) {
    CAPTURE(processes);
    run_in(processes, 4 / processes, program);
  }
}

/// The results that each process writes down, by rank.
template <class T>
class notes {
public:
  void write(uint32_t rank, T what) {
    std::lock_guard guard{mutex_};
    by_rank_[rank] = std::move(what);
  }

  [[nodiscard]] const std::map<uint32_t, T>& by_rank() const { return by_rank_; }

private:
  std::mutex mutex_;
  std::map<uint32_t, T> by_rank_;
};

double one_number(const tensor& value) {
  REQUIRE(value.element_count() == 1);
  return numbers_of(value)[0];
}

// Gradients that depend on variables, replica and step, some of them sparse.
task<void> train_once(replica_context& context, optimizer optimizer,
                      std::vector<variable> variables, uint64_t number) {
  auto reading = context.read(variables);
  auto values = co_await reading;
  random_stream noise{{7, "gradient", context.replica_id_in_sync_group(), number}};
  std::vector<gradient_and_variable> gradients;
  for (size_t i = 0; i < values.size(); ++i) {
    auto from = numbers_of(values[i]);
    for (auto& number : from)
      number += noise.uniform();
    auto dense = array(values[i].extents(), from);
    gradient one = dense;
    if (i == 1)
      one = indexed_slices{
        array({3}, {0, 2, static_cast<double>(context.replica_id_in_sync_group() % 4)}, dtype::i64),
        dense.slice(0, 3).clone(), dense.extents()};
    gradients.push_back({std::move(one), variables[i]});
  }
  auto applying = optimizer.apply_gradients(context, std::move(gradients));
  co_await applying;
}

/// The bits that a small training ends with.
std::vector<numbers> trained(strategy& strategy, const update_rule& rule,
                             const optimizer_options& options) {
  std::vector<variable> variables;
  for (int i = 0; i < 4; ++i)
    variables.push_back(strategy.make_variable(
      fmt::format("w{}", i),
      array({4 + i, 5}, numbers(static_cast<size_t>(5 * (4 + i)), 0.1 * i))));
  optimizer optimizer{rule, options};
  for (uint64_t step = 0; step < 5; ++step)
    strategy.run(
      [=](replica_context& context) { return train_once(context, optimizer, variables, step); });
  return mapped(variables,
                [&](const auto& variable) { return numbers_of(strategy.read(variable)); });
}

dataset counting(int64_t count) {
  tensor numbers{dtype::i64, {count}};
  std::iota(numbers.mutable_values<int64_t>().begin(), numbers.mutable_values<int64_t>().end(), 0);
  return make_dataset_from_tensors({numbers});
}

} // namespace

TEST_SUITE("strategies/kinds/multi_worker") {
  // ---- numbers and roles ----

  TEST_CASE("replicas are counted over all processes, local results are those of one") {
    run_in(3, 2, [](strategy& strategy, uint32_t rank) {
      CHECK(strategy.num_replicas_in_sync() == 6);
      auto ids = strategy.run([](replica_context& context) {
        CHECK(context.num_replicas_in_sync() == 6);
        return std::pair{context.replica_id_in_sync_group(), context.device()};
      });
      auto own = strategy.experimental_local_results(ids);
      REQUIRE(own.size() == 2);
      CHECK(own[0] == std::pair{2 * rank, std::string{"cpu:0"}});
      CHECK(own[1] == std::pair{2 * rank + 1, std::string{"cpu:1"}});
      auto contexts = strategy.experimental_distribute_values_from_function(
        [](value_context context) { return context; });
      CHECK(contexts[1].replica_id_in_sync_group == 2 * rank + 1);
      CHECK(contexts[1].num_replicas_in_sync == 6);
    });
  }

  TEST_CASE("only the first process checkpoints and writes summaries") {
    run_in(2, 1, [](strategy& strategy, uint32_t rank) {
      auto& extended = strategy.extended();
      CHECK(extended.should_checkpoint() == (rank == 0));
      CHECK(extended.should_save_summary() == (rank == 0));
      CHECK(extended.experimental_should_init());
      CHECK(extended.experimental_between_graph());
      CHECK_FALSE(extended.experimental_require_static_shapes());
      CHECK(extended.worker_devices().size() == 1);
      CHECK(extended.parameter_devices().size() == 1);
    });
  }

  TEST_CASE("a chief comes first") {
    auto thrown
      = play(3,
             [](played_worker& worker) {
               CHECK(worker.names == std::vector<std::string>{"chief:0", "worker:0", "worker:1"});
               multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
               auto all = strategy.run([](replica_context& context) -> task<tensor> {
                 auto own = array({1}, {1.0 * context.replica_id_in_sync_group()});
                 auto gathering = context.all_gather(own, 0);
                 auto gathered = co_await gathering;
                 co_return gathered;
               });
               CHECK(numbers_of(all.primary()) == numbers{0, 1, 2});
               CHECK(strategy.extended().should_checkpoint() == (worker.rank == 0));
             },
             {.has_chief = true});
    check_well(thrown);
  }

  TEST_CASE("alone, it is a mirrored strategy") {
    auto world = world::virtual_time();
    collective_all_reduce_strategy strategy{world, {.devices = cpu_devices(3)}};
    CHECK(strategy.num_replicas_in_sync() == 3);
    CHECK(strategy.extended().should_checkpoint());
    CHECK(strategy.extended().experimental_between_graph());
    auto values = strategy.run([](replica_context&) { return scalar(2); });
    CHECK(one_number(strategy.reduce(reduce_op::sum, values)) == 6);
  }

  TEST_CASE("it works over sockets") {
    auto thrown = play(2,
                       [](played_worker& worker) {
                         multi_worker_mirrored_strategy strategy{worker.world, worker.options(2)};
                         auto values = strategy.run([](replica_context& context) {
                           return scalar(1.0 + context.replica_id_in_sync_group());
                         });
                         CHECK(one_number(strategy.reduce(reduce_op::sum, values)) == 10);
                       },
                       {.has_sockets = true});
    check_well(thrown);
  }

  // ---- reductions ----

  TEST_CASE("a reduction is over the replicas of all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto values = strategy.run([](replica_context& context) {
        auto id = context.replica_id_in_sync_group();
        return std::tuple{array({2}, {1.0 + id, 10.0}), 0.5 * id, int64_t{1} << (20 * id % 60)};
      });
      auto [sum, half, bits] = strategy.reduce(reduce_op::sum, values);
      CHECK(numbers_of(sum) == numbers{10, 40});
      CHECK(half == 3);
      CHECK(bits == 2 + (int64_t{1} << 20) + (int64_t{1} << 40));
      auto means
        = strategy.reduce(reduce_op::mean, std::pair{std::get<0>(values), std::get<1>(values)});
      CHECK(numbers_of(means.first) == numbers{2.5, 10});
      CHECK(means.second == 0.75);
    });
  }

  TEST_CASE("a mean over an axis divides by the elements of all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto rows = strategy.run([](replica_context& context) {
        auto id = context.replica_id_in_sync_group(); // 0 to 3 rows
        return array({id, 2}, numbers(2 * id, 1.0 * id));
      });
      CHECK(numbers_of(strategy.reduce(reduce_op::sum, rows, 0)) == numbers{14, 14});
      CHECK(numbers_of(strategy.reduce(reduce_op::mean, rows, 0)) == numbers{14.0F / 6, 14.0F / 6});
      CHECK(one_number(strategy.reduce(reduce_op::mean, rows, {0, 1})) == 14.0F / 6);
    });
  }

  TEST_CASE("a tensor counts once for each process, a number is what it is everywhere") {
    for (uint32_t replicas : {1U, 2U})
      run_in(2, replicas, [](strategy& strategy, uint32_t rank) {
        auto own = scalar(1.0 + rank);
        CHECK(one_number(strategy.reduce(reduce_op::sum, own)) == 3);
        CHECK(one_number(strategy.reduce(reduce_op::mean, own)) == 1.5);
        auto row = rows_of({rank}, {1.0 + rank}, 2);
        CHECK(numbers_of(strategy.reduce(reduce_op::sum, row).values) == numbers{1, 2});
        CHECK(numbers_of(strategy.reduce(reduce_op::mean, row).values) == numbers{0.5, 1});
        CHECK(strategy.reduce(reduce_op::mean, 4.0) == 4);
        CHECK(strategy.reduce(reduce_op::sum, 0.0) == 0);
        CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, 4.0)); }).code
              == errc::invalid_argument);
      });
  }

  TEST_CASE("numbers that processes assign are one if they are, and else their mean") {
    for (uint32_t replicas : {1U, 2U})
      run_in(3, replicas, [](strategy& strategy, uint32_t rank) {
        auto mean = strategy.make_variable("mean", scalar(0, dtype::f64),
                                           {.aggregation = variable_aggregation::mean});
        for (bool differ : {false, true}) {
          strategy.run([=](replica_context& context) -> task<void> {
            auto assigning = context.assign(mean, differ ? 1.0 + rank : 0.1);
            co_await assigning;
          });
          CHECK(one_number(strategy.read(mean)) == (differ ? 2 : 0.1));
        }
      });
  }

  TEST_CASE("a reduced value is the same for all, and its mean is itself") {
    run_in(2, 2, [](strategy& strategy, uint32_t) {
      auto mirrored = distributed_value<tensor>::mirrored(scalar(5), 2);
      CHECK(one_number(strategy.reduce(reduce_op::mean, mirrored)) == 5);
      CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, mirrored)); }).code
            == errc::invalid_argument);
    });
  }

  TEST_CASE("a value reduced to one device is the same for all, too") {
    run_in(2, 2, [](strategy& strategy, uint32_t rank) {
      auto& extended = strategy.extended();
      auto values = strategy.experimental_distribute_values_from_function(
        [](value_context context) { return array({1}, {1.0 * context.replica_id_in_sync_group}); });
      auto mean = extended.reduce_to(reduce_op::mean, values, "cpu:0");
      CHECK(mean.size() == 1);
      CHECK(one_number(mean.primary()) == 1.5);
      CHECK(one_number(extended.reduce_to(reduce_op::mean, mean, "cpu:0").primary()) == 1.5);
      CHECK(one_number(strategy.reduce(reduce_op::mean, mean)) == 1.5);
      auto refusal
        = refusal_of([&] { static_cast<void>(extended.reduce_to(reduce_op::sum, mean, "cpu:0")); });
      CHECK(refusal.message.find("one value for all 4 replicas") != std::string::npos);
      CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, mean)); })
            == refusal);
      CHECK(numbers_of(strategy.gather(mean, 0)) == numbers{1.5, 1.5, 1.5, 1.5});
      CHECK(strategy.experimental_local_results(mean).size() == 1);
      CHECK(strategy.experimental_local_results(values)[1].values<float>()[0] == 2.0F * rank + 1);
    });
  }

  TEST_CASE("a broadcast to devices concerns one process, and so does an update") {
    run_in(2, 2, [](strategy& strategy, uint32_t rank) {
      auto weights = strategy.make_variable("w", scalar(1));
      if (rank != 0) return; // no process waits for it
      auto sent = strategy.extended().broadcast_to(scalar(4), weights);
      CHECK(sent.size() == 2);
      CHECK(one_number(sent.primary()) == 4);
      auto read = [](update_context& update, variable own) { return update.read(own); };
      auto updated = strategy.extended().update(weights, read);
      CHECK(strategy.experimental_local_results(updated).size() == 2);
    });
  }

  TEST_CASE("replicas reduce nests and gather over all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto results = strategy.run([](replica_context& context) -> task<tensor> {
        auto id = static_cast<double>(context.replica_id_in_sync_group());
        std::map<std::string, std::vector<tensor>> nest{{"a", {scalar(id), scalar(1)}},
                                                        {"b", {scalar(2 * id, dtype::f64)}}};
        auto reducing = context.all_reduce(reduce_op::sum, nest);
        auto sum = co_await reducing;
        CHECK(one_number(sum.at("a")[0]) == 6);
        CHECK(one_number(sum.at("a")[1]) == 4);
        CHECK(one_number(sum.at("b")[0]) == 12);
        auto own = array({2, context.replica_id_in_sync_group()},
                         numbers(static_cast<size_t>(2 * id), id));
        auto gathering = context.all_gather(own, -1);
        auto gathered = co_await gathering;
        CHECK(gathered.extents() == shape{2, 6});
        CHECK(numbers_of(gathered) == numbers{1, 2, 2, 3, 3, 3, 1, 2, 2, 3, 3, 3});
        auto differentiating
          = context.all_gather_gradient(gathered, -1, context.replica_id_in_sync_group());
        auto gradient = co_await differentiating;
        CHECK(numbers_of(gradient) == numbers(static_cast<size_t>(2 * id), 4 * id));
        co_return array({1}, {id});
      });
      CHECK(numbers_of(strategy.gather(results, 0)) == numbers{0, 1, 2, 3});
      CHECK(numbers_of(strategy.gather(array({1}, {7}), 0)) == numbers{7, 7, 7, 7});
    });
  }

  TEST_CASE("rows are gathered in the order of replicas") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto rows = strategy.run([](replica_context& context) {
        int64_t id = context.replica_id_in_sync_group();
        return id % 2 == 0 ? rows_of({id, 0}, {1.0 * id, 1}, 9) : rows_of({id}, {10.0 * id}, 9);
      });
      auto sum = strategy.reduce(reduce_op::sum, rows);
      CHECK(numbers_of(sum.indices) == numbers{0, 0, 1, 2, 0, 3});
      CHECK(numbers_of(sum.values) == numbers{0, 1, 10, 2, 1, 30});
      auto mean = strategy.reduce(reduce_op::mean, rows);
      CHECK(numbers_of(mean.values) == numbers{0, 0.25, 2.5, 0.5, 0.25, 7.5});
    });
  }

  TEST_CASE("rows whose dense extents one process leaves out are refused by their name") {
    auto thrown = play(2, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      auto rows = rows_of({worker.rank}, {1}, 9);
      if (worker.rank == 1) rows.dense_extents = {};
      static_cast<void>(strategy.reduce(reduce_op::sum, rows));
    });
    CHECK(std::ranges::any_of(thrown, [](const error& why) {
      return why.code == errc::invalid_argument
             && why.message.find("rows with dense_extents [9, 1]") != std::string::npos
             && why.message.find("rows without dense_extents") != std::string::npos;
    }));
  }

  TEST_CASE("a merge function runs in every process, and reduces over all") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        auto merge
          = [](cross_replica_context& all, distributed_value<tensor> values) -> task<double> {
          CHECK(values.size() == all.strategy().num_local_replicas());
          CHECK(all.num_replicas_in_sync() == 4);
          auto reducing = all.reduce_to(reduce_op::sum, values, "cpu:0");
          auto sum = co_await reducing;
          std::vector<std::pair<distributed_value<gradient>, destinations>> batch;
          for (int i = 0; i < 3; ++i)
            batch.emplace_back(as_gradients(values), "cpu:0");
          auto batching = all.batch_reduce_to(reduce_op::mean, batch, {.bytes_per_pack = 4});
          auto means = co_await batching;
          auto again = all.reduce(reduce_op::sum, values);
          auto total = co_await again;
          CHECK(one_number(total) == 10);
          CHECK(means.size() == 3);
          for (const auto& mean : means)
            CHECK(one_number(std::get<tensor>(mean.primary())) == 2.5);
          co_return one_number(sum.primary());
        };
        auto merging = context.merge_call(merge, scalar(1.0 + context.replica_id_in_sync_group()));
        auto result = co_await merging;
        co_return result;
      });
      for (auto each : strategy.experimental_local_results(results))
        CHECK(each == 10);
    });
  }

  TEST_CASE("16-bit values are added in 32 bits, and rounded once") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto values = strategy.run([](replica_context& context) {
        tensor one{dtype::f16, {1}};
        one.mutable_values<float16>()[0]
          = narrow<float16>(context.replica_id_in_sync_group() == 0 ? 2048.0 : 1.0);
        return one;
      });
      auto sum = strategy.reduce(reduce_op::sum, values);
      CHECK(widen<double>(sum.values<float16>()[0]) == 2052); // 2051 is none; one by one it is 2048
    });
  }

  // ---- variables ----

  TEST_CASE("variables begin with the value of the first process") {
    run_in(2, 2, [](strategy& strategy, uint32_t rank) {
      auto outside = strategy.make_variable("a", scalar(1.0 + rank));
      CHECK(one_number(strategy.read(outside)) == 1);
      CHECK(outside.copies() == 2);
      auto inside = strategy.run([](replica_context& context) -> task<double> {
        auto making = context.make_variable("b", scalar(10.0 + context.replica_id_in_sync_group()));
        auto made = co_await making;
        auto reading = context.read(made);
        auto value = co_await reading;
        co_return one_number(value);
      });
      for (auto each : strategy.experimental_local_results(inside))
        CHECK(each == 10);
    });
  }

  TEST_CASE("a variable that replicas name by number has the name of the first replica") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto made = strategy.run([](replica_context& context) -> task<variable> {
        auto id = context.replica_id_in_sync_group();
        auto name = id == 0 ? "dense/bias" : fmt::format("dense_{}/bias", id);
        auto making = context.make_variable(name, scalar(7.0 + id));
        auto mine = co_await making;
        co_return mine;
      });
      CHECK(made.name() == "dense/bias");
      CHECK(one_number(strategy.read(made)) == 7);
    });
  }

  TEST_CASE("processes that name a variable differently in a run are refused") {
    auto thrown = play(2, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      strategy.run([](replica_context& context) -> task<void> {
        auto name = context.replica_id_in_sync_group() == 0 ? "foo_0" : "bar_1";
        auto making = context.make_variable(name, scalar(1));
        static_cast<void>(co_await making);
      });
    });
    CHECK(std::ranges::any_of(thrown, [](const error& why) {
      return why.code == errc::invalid_argument
             && why.message.find("name of variable 'foo'") != std::string::npos
             && why.message.find("name of variable 'bar'") != std::string::npos;
    }));
  }

  TEST_CASE("values that do not fit together are refused with the numbers of their replicas") {
    run_in(2, 2, [](strategy& strategy, uint32_t rank) {
      auto pairs = distributed_value<tensor>::per_replica({scalar(1), scalar(1, dtype::f64)});
      CHECK(refusal_of([&] {
              static_cast<void>(strategy.reduce(reduce_op::sum, pairs, std::vector<int64_t>{}));
            }).message
            == fmt::format("replica {} has a value of f64, replica {} one of f32", 2 * rank + 1,
                           2 * rank));
      auto kinds = distributed_value<gradient>::per_replica({zeros({2, 1}), rows_of({0}, {1}, 2)});
      CHECK(refusal_of([&] { static_cast<void>(strategy.reduce(reduce_op::sum, kinds)); }).message
            == fmt::format("replica {} has a sparse value, replica {} a dense one; make all of one "
                           "kind",
                           2 * rank + 1, 2 * rank));
    });
  }

  TEST_CASE("rows that do not have one number each are refused, though those of all add up") {
    run_in(2, 1, [](strategy& strategy, uint32_t rank) {
      auto target
        = strategy.make_variable("t", zeros({3, 1}), {.aggregation = variable_aggregation::sum});
      optimizer sgd{rules::sgd{}};
      auto rows = miscounted_rows(rank);
      auto refused = [&](auto call) {
        auto why = refusal_of([&] {
          strategy.run([=](replica_context& context) -> task<void> {
            auto calling = call(context);
            co_await calling;
          });
        });
        CHECK(why.code == errc::invalid_argument);
        CHECK_MESSAGE(why.message.find(fmt::format("replica {} has rows with numbers of shape [{}]",
                                                   rank, 2 - rank))
                        == 0,
                      why.message);
      };
      refused([=](replica_context& context) { return context.scatter_add(target, rows); });
      refused([=](replica_context& context) { return context.all_reduce(reduce_op::sum, rows); });
      refused([=](replica_context& context) { return sgd.apply_gradients(context, rows, target); });
      CHECK(numbers_of(strategy.read(target)) == numbers{0, 0, 0});
    });
  }

  TEST_CASE("a change by all replicas is aggregated over all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      using mode = variable_aggregation;
      for (auto [aggregation, expected] : {std::pair{mode::sum, 11.0}, std::pair{mode::mean, 3.5},
                                           std::pair{mode::only_first_replica, 2.0}}) {
        auto name = std::string{to_string(aggregation)};
        auto target = strategy.make_variable(name, scalar(1), {.aggregation = aggregation});
        auto seen = strategy.run([target = target](replica_context& context) -> task<double> {
          auto adding
            = context.assign_add(target, scalar(1.0 + context.replica_id_in_sync_group()));
          auto value = co_await adding;
          co_return one_number(value);
        });
        for (auto each : strategy.experimental_local_results(seen))
          CHECK(each == expected);
        CHECK(one_number(strategy.read(target)) == expected);
      }
    });
  }

  TEST_CASE("processes that change different variables are refused") {
    auto thrown = play(2, [](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      const variable_options first{.aggregation = variable_aggregation::only_first_replica};
      const std::vector<variable> both{strategy.make_variable("a", scalar(1), first),
                                       strategy.make_variable("b", scalar(2), first)};
      auto target = both[worker.rank];
      strategy.run([target](replica_context& context) -> task<void> {
        auto assigning = context.assign(target, scalar(5));
        co_await assigning;
      });
    });
    CHECK(std::ranges::any_of(thrown,
                              [](const error& why) { return why.code == errc::invalid_argument; }));
  }

  TEST_CASE("a number from all replicas is one value: it has a mean, and no sum but 0") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto add = [&](const variable& target, double number) {
        strategy.run([=](replica_context& context) -> task<void> {
          auto adding = context.assign_add(target, number);
          co_await adding;
        });
        return one_number(strategy.read(target));
      };
      auto mean
        = strategy.make_variable("m", scalar(1), {.aggregation = variable_aggregation::mean});
      CHECK(add(mean, 5) == 6);
      auto first = strategy.make_variable(
        "f", scalar(1), {.aggregation = variable_aggregation::only_first_replica});
      CHECK(add(first, 5) == 6);
      auto sum = strategy.make_variable("s", scalar(1), {.aggregation = variable_aggregation::sum});
      CHECK(add(sum, 0) == 1);
      auto refusal = refusal_of([&] { add(sum, 5); });
      CHECK(refusal.code == errc::invalid_argument);
      CHECK(refusal.message.find("all 4 replicas call assign_add of variable 's'")
            != std::string::npos);
    });
  }

  TEST_CASE("numbers that differ are summed, whichever process they are of") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto sum = strategy.make_variable("s", scalar(1), {.aggregation = variable_aggregation::sum});
      for (const auto& all : {numbers{1, 2, 3, 4}, numbers{0, 0, 2, 3}, numbers{5, 5, 5, 0}}) {
        auto before = one_number(strategy.read(sum));
        strategy.run([=](replica_context& context) -> task<void> {
          auto adding = context.assign_add(sum, all[context.replica_id_in_sync_group()]);
          co_await adding;
        });
        CHECK(one_number(strategy.read(sum)) == before + all[0] + all[1] + all[2] + all[3]);
      }
    });
  }

  TEST_CASE("a number that a variable cannot hold is refused by all, whichever process it is of") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto sum = strategy.make_variable("s", scalar(1, dtype::i32),
                                        {.aggregation = variable_aggregation::sum});
      auto refusal = refusal_of([&] {
        strategy.run([=](replica_context& context) -> task<void> {
          auto adding
            = context.assign_add(sum, context.replica_id_in_sync_group() == 3 ? 1e10 : 1.0);
          co_await adding;
        });
      });
      CHECK(refusal
            == error{errc::invalid_argument, "variable 's' is i32, which cannot be 10000000000"});
      CHECK(one_number(strategy.read(sum)) == 1);
    });
  }

  TEST_CASE("scatters take the rows of all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto sum
        = strategy.make_variable("s", zeros({5, 1}), {.aggregation = variable_aggregation::sum});
      auto first = strategy.make_variable(
        "f", zeros({5, 1}), {.aggregation = variable_aggregation::only_first_replica});
      strategy.run([=](replica_context& context) -> task<void> {
        int64_t id = context.replica_id_in_sync_group();
        auto rows = rows_of({id, 4}, {1.0 + static_cast<double>(id), 1}, 5);
        auto adding = context.scatter_add(sum, rows);
        co_await adding;
        auto writing = context.scatter_update(first, rows);
        co_await writing;
      });
      CHECK(numbers_of(strategy.read(sum)) == numbers{1, 2, 3, 4, 4});
      CHECK(numbers_of(strategy.read(first)) == numbers{1, 0, 0, 0, 1});
    });
  }

  TEST_CASE("a scatter of the first replica takes a list of rows, with as many values") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto first = strategy.make_variable(
        "f", zeros({5, 1}), {.aggregation = variable_aggregation::only_first_replica});
      auto code_of = [&](const indexed_slices& rows) {
        return refusal_of([&] {
                 strategy.run([=](replica_context& context) -> task<void> {
                   auto writing = context.scatter_update(first, rows);
                   co_await writing;
                 });
               })
          .code;
      };
      auto rows = rows_of({1, 4}, {1, 2}, 5);
      auto of_scalar = rows;
      of_scalar.indices = tensor{dtype::i64, {}};
      CHECK(code_of(of_scalar) == errc::invalid_argument);
      auto of_fewer = rows;
      of_fewer.indices = rows.indices.slice(0, 1);
      CHECK(code_of(of_fewer) == errc::invalid_argument);
    });
  }

  TEST_CASE("without aggregation a replica writes its own copy") {
    run_in(2, 1, [](strategy& strategy, uint32_t rank) {
      auto own = strategy.make_variable("w", scalar(0));
      strategy.run([own](replica_context& context) -> task<void> {
        auto writing = context.assign(own, 1.0 + context.replica_id_in_sync_group());
        co_await writing;
      });
      CHECK(one_number(strategy.read(own)) == 1.0 + rank);
    });
  }

  TEST_CASE(
    "variables that are synchronised on read are what the copies of all processes come to") {
    for_every_split([](strategy& strategy, uint32_t) {
      using mode = variable_aggregation;
      auto make = [&](mode aggregation) {
        return strategy.make_variable(
          std::string{to_string(aggregation)}, scalar(0),
          {.synchronization = variable_synchronization::on_read, .aggregation = aggregation});
      };
      std::vector<variable> all{make(mode::sum), make(mode::mean), make(mode::only_first_replica)};
      strategy.run([=](replica_context& context) -> task<void> {
        for (const auto& each : all) {
          auto writing = context.assign(each, 1.0 + context.replica_id_in_sync_group());
          co_await writing;
        }
      });
      CHECK(one_number(strategy.read(all[0])) == 10);
      CHECK(one_number(strategy.read(all[1])) == 2.5);
      CHECK(one_number(strategy.read(all[2])) == 1);
      for (const auto& each : all) {
        static_cast<void>(strategy.assign(each, 8));
        CHECK(one_number(strategy.read(each)) == 8); // a sum is shared out among all replicas
      }
      CHECK(refusal_of([&] { static_cast<void>(strategy.assign_add(all[0], 1)); }).code
            == errc::invalid_argument);
    });
  }

  TEST_CASE("metrics count the rows of all processes") {
    for_every_split([](strategy& strategy, uint32_t) {
      mean_metric loss{strategy, "loss"};
      for (int step = 0; step < 3; ++step)
        strategy.run([&loss](replica_context& context) -> task<void> {
          auto updating = loss.update_state(context, context.replica_id_in_sync_group());
          co_await updating;
        });
      CHECK(loss.result() == 1.5);
      loss.reset_state();
      CHECK(loss.result() == 0);
    });
  }

  // ---- training ----

  TEST_CASE("gradients of a narrower dtype are added in that of their variable") {
    for_every_split([](strategy& strategy, uint32_t) {
      auto weights = strategy.make_variable("w", scalar(0));
      optimizer sgd{rules::sgd{.learning_rate = 1}};
      strategy.run([=](replica_context& context) -> task<void> {
        auto own = context.replica_id_in_sync_group() == 0 ? 2048.0 : 1.0; // f16 has no 2049
        auto applying = sgd.apply_gradients(context, cast(scalar(own), dtype::f16), weights);
        co_await applying;
      });
      CHECK(one_number(strategy.read(weights)) == -2051);
    });
  }

  TEST_CASE("training ends with the same bits, however replicas are split") {
    struct setting {
      update_rule rule;
      optimizer_options options;
    };

    const std::vector<setting> settings{
      {rules::sgd{.learning_rate = 0.1}, {}},
      {rules::adam{.learning_rate = 0.01}, {.aggregation = reduce_op::mean}},
      {rules::momentum{.learning_rate = 0.1}, {.accumulation_steps = 2, .clip_global_norm = 0.5}}};
    for (const auto& [rule, options] : settings) {
      auto world = world::threads({.seed = 5, .threads = 2});
      mirrored_strategy mirrored{world, {cpu_devices(4)}};
      auto expected = trained(mirrored, rule, options);
      for_every_split([&, &rule = rule, &options = options](strategy& strategy, uint32_t) {
        CHECK(trained(strategy, rule, options) == expected);
      });
    }
  }

  TEST_CASE("a ring adds in its own order, and all processes hold the same bits") {
    notes<std::vector<numbers>> ends;
    auto thrown = play(3, [&](played_worker& worker) {
      auto options = worker.options(2);
      options.communication.implementation = communication_implementation::ring;
      multi_worker_mirrored_strategy strategy{worker.world, options};
      ends.write(worker.rank, trained(strategy, rules::sgd{.learning_rate = 0.1}, {}));
    });
    check_well(thrown);
    CHECK(ends.by_rank().at(1) == ends.by_rank().at(0));
    CHECK(ends.by_rank().at(2) == ends.by_rank().at(0));
  }

  // ---- input ----

  TEST_CASE("the processes share a dataset, and end it together") {
    for (int64_t count : {1, 7, 16, 17}) {
      CAPTURE(count);
      notes<std::pair<uint64_t, std::vector<int64_t>>> seen;
      run_in(2, 2, [&](strategy& strategy, uint32_t rank) {
        auto input = strategy.experimental_distribute_dataset(counting(count).batch(8));
        std::vector<int64_t> own;
        uint64_t steps = 0;
        for (auto batches = input.iterate(); auto batch = batches.next(); ++steps)
          for (const auto& each : strategy.experimental_local_results(*batch))
            for (auto number : each.tensors[0].values<int64_t>())
              own.push_back(number);
        seen.write(rank, {steps, own});
      });
      const auto& first = seen.by_rank().at(0);
      const auto& second = seen.by_rank().at(1);
      CHECK(first.first == second.first);
      auto all = first.second;
      all.insert(all.end(), second.second.begin(), second.second.end());
      std::ranges::sort(all);
      std::vector<int64_t> expected(static_cast<size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(all == expected);
    }
  }

  TEST_CASE("datasets of a function differ, and end with the longest of them") {
    notes<std::vector<uint64_t>> steps;
    run_in(2, 1, [&](strategy& strategy, uint32_t rank) {
      auto make = [&](const input_context& context) {
        CHECK(context == input_context{2, rank, 2});
        return counting(3 + 4 * rank).batch(2);
      };
      auto input = strategy.distribute_datasets_from_function(make);
      std::vector<uint64_t> rows;
      for (auto batches = input.iterate(); auto batch = batches.next();)
        rows.push_back(batch->primary().tensors[0].element_count());
      steps.write(rank, rows);
    });
    CHECK(steps.by_rank().at(0) == std::vector<uint64_t>{2, 1, 0, 0});
    CHECK(steps.by_rank().at(1) == std::vector<uint64_t>{2, 2, 2, 1});
  }

  TEST_CASE("a process without any data is refused by all of them") {
    for (bool drop_remainder : {false, true}) {
      auto thrown = play(2, [&](played_worker& worker) {
        multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
        static_cast<void>(strategy.distribute_datasets_from_function([&](const input_context&) {
          return counting(worker.rank == 1 ? 0 : 3).batch(2, drop_remainder);
        }));
      });
      for (const auto& why : thrown)
        CHECK(why
              == error{errc::invalid_argument,
                       fmt::format("the dataset of worker:1 has no elements, so {}; give each "
                                   "process at least one",
                                   drop_remainder
                                     ? "every step would be left out"
                                     : "the shape of a batch without rows is not known there")});
    }
  }

  TEST_CASE("pipelines for single replicas are for a mirrored strategy") {
    auto world = world::virtual_time();
    multi_worker_mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
    CHECK(refusal_of([&] {
            static_cast<void>(strategy.distribute_datasets_from_function(
              [](const input_context&) { return counting(3).batch(1); },
              {.replication_mode = input_replication_mode::per_replica}));
          }).code
          == errc::unimplemented);
  }

  // ---- checkpoints ----

  TEST_CASE("a checkpoint of several processes is one of all replicas") {
    scratch_folder folder;
    auto make = [](strategy& strategy) {
      auto weights = strategy.make_variable("w", scalar(0));
      auto total = strategy.make_variable("t", scalar(0),
                                          {.synchronization = variable_synchronization::on_read,
                                           .aggregation = variable_aggregation::sum});
      return std::pair{weights, total};
    };
    run_in(2, 2, [&](strategy& strategy, uint32_t) {
      auto [weights, total] = make(strategy);
      static_cast<void>(strategy.assign(weights, 3));
      strategy.run([total = total](replica_context& context) -> task<void> {
        auto adding = context.assign_add(total, 1.0 + context.replica_id_in_sync_group());
        co_await adding;
      });
      save_checkpoint(strategy, folder.path(), 7);
      CHECK(one_number(strategy.read(total)) == 10); // all have saved before anyone goes on
    });
    for (auto is_made_first : {true, false})
      for_every_split([&](strategy& strategy, uint32_t) {
        if (is_made_first) make(strategy);
        CHECK(restore_checkpoint(strategy, folder.path()) == 7);
        if (!is_made_first) make(strategy);
        auto variables = strategy.variables();
        CHECK(one_number(strategy.read(variables[0])) == 3);
        CHECK(one_number(strategy.read(variables[1])) == 10);
      });
  }

  TEST_CASE("processes that find different checkpoints do not go on") {
    scratch_folder folder;
    scratch_folder other;
    run_in(1, 1, [&](strategy& strategy, uint32_t) {
      strategy.make_variable("w", scalar(0));
      save_checkpoint(strategy, folder.path(), 7);
    });
    auto thrown = play(2, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      strategy.make_variable("w", scalar(0));
      static_cast<void>(
        restore_checkpoint(strategy, worker.rank == 0 ? folder.path() : other.path()));
    });
    for (const auto& why : thrown)
      CHECK(why
            == error{errc::failed_precondition,
                     "worker:1 finds no checkpoint, worker:0 that of step 7; have all processes "
                     "restore the same checkpoint"});
  }

  TEST_CASE("a process that cannot read its checkpoint says why, and the others do not go on") {
    scratch_folder folder;
    run_in(1, 1, [&](strategy& strategy, uint32_t) {
      strategy.make_variable("w", scalar(0));
      save_checkpoint(strategy, folder.path(), 7);
    });
    std::filesystem::create_symlink("loop", folder / "loop");
    auto thrown = play(2, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      strategy.make_variable("w", scalar(0));
      static_cast<void>(
        restore_checkpoint(strategy, worker.rank == 0 ? folder.path() : folder / "loop"));
    });
    CHECK(thrown[0].code == errc::failed_precondition);
    CHECK(thrown[1].code == errc::resource);
  }
}

} // namespace multi_worker_test
