// SPDX-License-Identifier: Apache-2.0
// Goal: replicas with inputs that end at different times train on all of them, and none waits for
// another for ever. Method: counts that can be added up in the head, in one process and in several
// that threads play.
#include "strategies/jobs/join.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

namespace join_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using lengths = std::vector<uint64_t>; // The number of inputs of each replica.

/// The inputs of replica r are 10 r + 1, 10 r + 2, and so on.
auto inputs_of(uint32_t replica, uint64_t length) {
  return [replica, length, given = uint64_t{0}]() mutable -> std::optional<double> {
    return given == length ? std::nullopt : std::optional{10.0 * replica + ++given};
  };
}

/// Each replica's gradient is its input, or its input in one row of a table.
uint64_t train_on(strategy& strategy, const lengths& of, const variable& weights,
                  const variable& table, reduce_op how = reduce_op::mean) {
  optimizer plain{rules::sgd{.learning_rate = 1}, {.aggregation = how}};
  auto step
    = [=](replica_context& context, joined_step now, std::optional<double> input) -> task<void> {
    auto gradients = zero_gradients({&weights, 1});
    gradient rows = rows_of({}, {}, 4);
    if (input) {
      gradients[0].gradient = scalar(*input);
      rows = rows_of({context.replica_id_in_sync_group()}, {*input}, 4);
    }
    gradients.push_back({rows, table});
    auto applying = plain.apply_gradients(context, std::move(gradients), now.with_input);
    co_await applying;
  };
  auto steps = strategy.run([=](replica_context& context) -> task<uint64_t> {
    auto me = context.replica_id_in_sync_group();
    auto joining = join(context, inputs_of(me, of[me]), step);
    auto made = co_await joining;
    co_return made;
  });
  for (auto made : steps.local_results())
    CHECK(made == steps.primary());
  return steps.primary();
}

/// The result of training on inputs of given lengths.
struct outcome {
  uint64_t steps = 0;
  numbers weights;
  numbers table;

  bool operator==(const outcome&) const = default;
};

outcome trained(strategy& strategy, const lengths& of, reduce_op how = reduce_op::mean) {
  auto weights = strategy.make_variable("w", scalar(0));
  auto table = strategy.make_variable("table", zeros({4, 1}));
  auto steps = train_on(strategy, of, weights, table, how);
  return {steps, numbers_of(strategy.read(weights)), numbers_of(strategy.read(table))};
}

outcome trained_alone(const lengths& of, reduce_op how = reduce_op::mean) {
  auto world = world::virtual_time();
  mirrored_strategy strategy{world, {.devices = cpu_devices(static_cast<uint32_t>(of.size()))}};
  return trained(strategy, of, how);
}

} // namespace

TEST_SUITE("strategies/jobs/join") {
  TEST_CASE(
    "steps go on until the longest input is over, and means are over those that have some") {
    auto seen = trained_alone({3, 1, 0, 2});
    CHECK(seen.steps == 3);
    // (1 + 11 + 31) / 3, then (2 + 32) / 2, then 3.
    CHECK(seen.weights[0] == doctest::Approx(-(43.0 / 3 + 17 + 3)));
    CHECK(seen.table[0] == doctest::Approx(-(1.0 / 3 + 1 + 3)));
    CHECK(seen.table[1] == doctest::Approx(-11.0 / 3));
    CHECK(seen.table[2] == 0);
    CHECK(seen.table[3] == doctest::Approx(-(31.0 / 3 + 16)));
  }

  TEST_CASE("sums are sums, whichever replicas have input") {
    auto seen = trained_alone({3, 1, 0, 2}, reduce_op::sum);
    CHECK(seen.weights[0] == -(43 + 34 + 3));
    CHECK(seen.table[3] == -(31 + 32));
  }

  TEST_CASE(
    "it does not matter how many processes the replicas are in, nor which one has no input") {
    for (const auto& of : {lengths{3, 1, 0, 2}, lengths{0, 0, 5, 1}, lengths{2, 2, 2, 2},
                           lengths{0, 0, 0, 1}, lengths{0, 0, 0, 0}}) {
      auto alone = trained_alone(of);
      CHECK(alone.steps == std::ranges::max(of));
      for (uint32_t processes : {2U, 4U}) {
        CAPTURE(processes);
        auto thrown = play(processes, [&](played_worker& worker) {
          multi_worker_mirrored_strategy strategy{worker.world, worker.options(4 / processes)};
          CHECK(trained(strategy, of) == alone);
        });
        for (const auto& why : thrown)
          CHECK_MESSAGE(why.code == errc::none, why.message);
      }
    }
  }

  TEST_CASE("a replica without input takes part in whatever else the others reduce") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = cpu_devices(3)}};
    auto sums = strategy.run([](replica_context& context) -> task<double> {
      auto me = context.replica_id_in_sync_group();
      auto seen = std::make_shared<double>(0);
      auto step
        = [seen](replica_context& context, joined_step, std::optional<double> input) -> task<void> {
        auto reducing = context.all_reduce(reduce_op::sum, scalar(input.value_or(0)));
        auto sum = co_await reducing;
        *seen += numbers_of(sum)[0];
      };
      auto joining = join(context, inputs_of(me, me), step);
      co_await joining;
      co_return *seen;
    });
    for (auto sum : sums.local_results())
      CHECK(sum == 11 + 21 + 22);
  }

  TEST_CASE("a replica that throws while others have no input ends the run for all") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
    auto why = refusal_of([&] {
      strategy.run([](replica_context& context) -> task<void> {
        auto me = context.replica_id_in_sync_group();
        auto step = [](replica_context&, joined_step, std::optional<double> input) -> task<void> {
          if (input == 12) throw failure{{errc::user_code, "broken data"}};
          co_return;
        };
        auto joining = join(context, inputs_of(me, 2 * me), step);
        co_await joining;
      });
    });
    CHECK(why.message == "broken data");
  }

  TEST_CASE("numbers of contributors that cannot be are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
    auto weights = strategy.make_variable("w", scalar(0));
    auto reason = [&](const optimizer& with, uint32_t first, uint32_t second) {
      return refusal_of([&] {
        strategy.run([=](replica_context& context) -> task<void> {
          auto contributors = context.replica_id_in_sync_group() == 0 ? first : second;
          auto applying
            = with.apply_gradients(context, zero_gradients({&weights, 1}), contributors);
          co_await applying;
        });
      });
    };
    optimizer plain{rules::sgd{}, {reduce_op::mean}};
    CHECK(reason(plain, 0, 0).message == "0 of 2 replicas cannot have brought gradients");
    CHECK(reason(plain, 3, 3).message == "3 of 2 replicas cannot have brought gradients");
    CHECK(reason(plain, 1, 2).message
          == "replicas say that 1 and that 2 of them have brought gradients; all have to give the "
             "same number");
    optimizer every_third{rules::sgd{}, {.accumulation_steps = 3}};
    CHECK(reason(every_third, 2, 2).code == errc::failed_precondition);
  }
}

} // namespace join_test
