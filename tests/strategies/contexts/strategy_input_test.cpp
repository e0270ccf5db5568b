// SPDX-License-Identifier: Apache-2.0
// Goal: in every step each replica gets its share of a batch. Method: numbers in order, every
// strategy.
#include "strategies/data/dataset_from_tensors.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/small_job.hpp"

#include <numeric>

namespace strategy_input_test {

using namespace troupe;
using namespace troupe::test;

namespace {

// 0, 1, 2, ... one at a time.
dataset counting(int64_t count) {
  tensor numbers{dtype::i64, {count}};
  auto values = numbers.mutable_values<int64_t>();
  std::iota(values.begin(), values.end(), int64_t{0});
  return make_dataset_from_tensors({numbers});
}

std::vector<int64_t> numbers_of(const element& batch) {
  auto values = batch.tensors[0].values<int64_t>();
  return {values.begin(), values.end()};
}

} // namespace

TEST_SUITE("strategies/contexts/strategy_input") {
  TEST_CASE("a global batch is cut into one for each replica, and nothing is lost") {
    for_every_strategy([](strategy& strategy) {
      auto input = strategy.experimental_distribute_dataset(counting(17).batch(10));
      std::vector<int64_t> all;
      for (auto batches = input.iterate(); auto batch = batches.next();) {
        CHECK(batch->size() == strategy.num_replicas_in_sync());
        for (const auto& own : batch->local_results())
          for (auto number : numbers_of(own))
            all.push_back(number);
      }
      std::vector<int64_t> expected(17);
      std::iota(expected.begin(), expected.end(), int64_t{0});
      CHECK(all == expected);
    });
  }

  TEST_CASE("a parameter server strategy shares batches among all replicas of its job") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 3}};
    auto input = strategy.experimental_distribute_dataset(counting(6).batch(6));
    auto batches = input.iterate();
    auto batch = batches.next();
    REQUIRE(batch);
    REQUIRE(batch->size() == 3);
    for (uint32_t i = 0; i < 3; ++i)
      CHECK(numbers_of((*batch)[i]) == std::vector<int64_t>{2 * i, 2 * i + 1});
    CHECK_FALSE(batches.next());
  }

  TEST_CASE("a replica for which no rows are left gets a batch without rows") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(3)}};
    auto input = strategy.experimental_distribute_dataset(counting(4).batch(3));
    auto batches = input.iterate();
    REQUIRE(batches.next());
    auto last = batches.next();
    REQUIRE(last);
    auto counts = strategy.run(
      [](replica_context&, const element& batch) { return batch.tensors[0].element_count(); },
      *last);
    CHECK(strategy.reduce(reduce_op::sum, counts) == 1);
    CHECK_FALSE(batches.next());
  }

  TEST_CASE("a function that makes batches of replicas is asked once, or once for each replica") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    int calls = 0;
    auto make = [&](const input_context& context) {
      ++calls;
      CHECK(context.num_replicas_in_sync == 2);
      return counting(4).batch(context.get_per_replica_batch_size(4));
    };
    auto input = strategy.distribute_datasets_from_function(make);
    auto batches = input.iterate();
    auto first = batches.next();
    REQUIRE(first);
    CHECK(numbers_of((*first)[0]) == std::vector<int64_t>{0, 1});
    CHECK(numbers_of((*first)[1]) == std::vector<int64_t>{2, 3});
    CHECK(calls == 1);
    auto own = strategy.distribute_datasets_from_function(
      make, {.replication_mode = input_replication_mode::per_replica});
    CHECK(calls == 3);
    auto both = own.iterate().next();
    REQUIRE(both);
    CHECK(numbers_of((*both)[1]) == std::vector<int64_t>{0, 1});
  }

  TEST_CASE("a function that makes batches of replicas is told how many there are") {
    for_every_strategy([](strategy& strategy) {
      std::vector<input_context> asked;
      auto input = strategy.distribute_datasets_from_function([&](const input_context& context) {
        asked.push_back(context);
        return counting(10).batch(1);
      });
      auto batches = input.iterate();
      auto first = batches.next();
      REQUIRE(first);
      CHECK(first->size() == strategy.num_replicas_in_sync());
      REQUIRE(asked.size() == 1);
      CHECK(asked[0].num_input_pipelines == 1);
      CHECK(asked[0].input_pipeline_id == 0);
      CHECK(asked[0].num_replicas_in_sync == strategy.num_replicas_in_sync());
    });
  }

  TEST_CASE("only a mirrored strategy calls a function for each replica") {
    auto world = world::virtual_time();
    one_device_strategy strategy{world};
    auto refused = refusal_of([&] {
      static_cast<void>(strategy.distribute_datasets_from_function(
        [](const input_context&) { return counting(4).batch(2); },
        {.replication_mode = input_replication_mode::per_replica}));
    });
    CHECK(refused.code == errc::unimplemented);
    CHECK(refused.message
          == "a one_device strategy does not call the function for each replica; use the mode "
             "per_worker, or a mirrored strategy");
  }

  TEST_CASE("the next batch cannot be asked for in a replica") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto input = strategy.experimental_distribute_dataset(counting(4).batch(2));
    auto batches = input.iterate();
    auto refused = refusal_of(
      [&] { strategy.run([&batches](replica_context&) { static_cast<void>(batches.next()); }); });
    CHECK(refused.code == errc::wrong_context);
  }

  TEST_CASE("each pass has another order, also after one that was gone on with") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto make = [&] {
      return strategy.experimental_distribute_dataset(counting(64).shuffle(64, 1).batch(64));
    };
    auto input = make();
    auto first_of = [](strategy_iterator pass) { return numbers_of((*pass.next())[0]); };
    auto passes
      = std::array{first_of(input.iterate()), first_of(input.iterate()), first_of(input.iterate())};
    CHECK(passes[0] != passes[1]);
    CHECK(passes[1] != passes[2]);
    auto again = make();
    CHECK(first_of(again.iterate()) == passes[0]);
    auto resumed = make();
    auto batches = resumed.iterate();
    static_cast<void>(again.iterate());
    batches.restore(again.iterate().position()); // its third
    CHECK(first_of(batches) == passes[2]);
    auto next = first_of(resumed.iterate());
    CHECK(next == first_of(again.iterate()));
    CHECK(next != passes[0]);
  }

  TEST_CASE("an iterator goes on from a position that was saved") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto input = strategy.experimental_distribute_dataset(counting(12).batch(4));
    auto batches = input.iterate();
    REQUIRE(batches.next());
    auto again = input.iterate();
    again.restore(batches.position());
    CHECK(numbers_of((*again.next())[0]) == std::vector<int64_t>{4, 5});
  }
}

} // namespace strategy_input_test
