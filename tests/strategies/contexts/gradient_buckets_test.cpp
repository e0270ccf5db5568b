// SPDX-License-Identifier: Apache-2.0
// Goal: gradients that leave while others are computed come to the sums of those that wait for each
// other. Method: the same small training both ways, for splits of four replicas.
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/mapped.hpp"
#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/reduce/process_group.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>

namespace gradient_buckets_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using layout = std::vector<std::vector<size_t>>;

std::vector<variable> make_variables(strategy& strategy) {
  std::vector<variable> variables;
  for (int i = 0; i < 5; ++i)
    variables.push_back(strategy.make_variable(
      fmt::format("w{}", i), zeros({2 + i, 3}, i == 3 ? dtype::f64 : dtype::f32)));
  return variables;
}

tensor gradient_for(const variable& of, uint32_t replica, uint64_t step) {
  random_stream noise{{3, of.name(), replica, step}};
  numbers values;
  for (int64_t i = 0; i < of.extents().element_count(); ++i)
    values.push_back(noise.uniform() - 0.3);
  return array(of.extents(), values, of.type());
}

std::vector<numbers> values_of(strategy& strategy) {
  return mapped(strategy.variables(),
                [&](const auto& variable) { return numbers_of(strategy.read(variable)); });
}

const update_rule adam = rules::adam{.learning_rate = 0.01};

std::vector<numbers> trained_together(strategy& strategy) {
  auto variables = make_variables(strategy);
  optimizer optimizer{adam, {.aggregation = reduce_op::mean}};
  for (uint64_t step = 0; step < 4; ++step)
    strategy.run([=](replica_context& context) -> task<void> {
      std::vector<gradient_and_variable> gradients;
      for (const auto& each : variables)
        gradients.push_back({gradient_for(each, context.replica_id_in_sync_group(), step), each});
      auto applying = optimizer.apply_gradients(context, std::move(gradients));
      co_await applying;
    });
  return values_of(strategy);
}

std::vector<numbers> trained_in_buckets(strategy& strategy, size_t bytes_per_bucket) {
  auto variables = make_variables(strategy);
  optimizer optimizer{adam, {.aggregation = reduce_op::mean}};
  gradient_buckets buckets{strategy, variables, bytes_per_bucket};
  for (uint64_t step = 0; step < 4; ++step)
    strategy.run([=](replica_context& context) -> task<void> {
      auto marker = buckets.begin(context);
      auto replica = context.replica_id_in_sync_group();
      auto computing = context.compute([=](std::stop_token) {
        for (size_t i = 0; i < variables.size(); ++i) { // each replica in an order of its own
          const auto& one = variables[(i + replica) % variables.size()];
          marker.ready(one, gradient_for(one, replica, step));
        }
        return true;
      });
      co_await computing;
      auto reducing = buckets.reduced(context);
      auto sums = co_await reducing;
      auto applying = optimizer.apply_reduced_gradients(context, std::move(sums));
      co_await applying;
    });
  return values_of(strategy);
}

// A table that is looked up, and a layer behind it.
expression small_loss(tape& t, std::span<const expression> variables, uint32_t replica,
                      uint64_t step) {
  tensor rows{dtype::i64, {3}};
  std::ranges::copy(std::array<int64_t, 3>{0, 2 + replica, static_cast<int64_t>(step)},
                    rows.mutable_values<int64_t>().begin());
  auto looked_up = t.embedding(variables[0], rows);
  return t.mean(t.tanh(t.add_bias(t.matmul(looked_up, variables[1]), variables[2])));
}

// @param bytes_per_bucket 0: without buckets.
std::vector<numbers> minimized(strategy& strategy, size_t bytes_per_bucket) {
  std::vector<variable> variables{
    strategy.make_variable("table",
                           array({6, 2}, {.1, .2, .3, .4, .5, .6, .7, .8, .9, 1, 1.1, 1.2})),
    strategy.make_variable("weights", array({2, 2}, {.5, -.5, 1, .25})),
    strategy.make_variable("bias", zeros({2}))};
  optimizer optimizer{rules::sgd{.learning_rate = 0.5}, {.aggregation = reduce_op::mean}};
  std::optional<gradient_buckets> buckets;
  if (bytes_per_bucket > 0) buckets.emplace(strategy, variables, bytes_per_bucket);
  for (uint64_t step = 0; step < 4; ++step)
    strategy.run([=](replica_context& context) -> task<void> {
      auto loss = [replica = context.replica_id_in_sync_group(),
                   step](tape& t, std::span<const expression> given) {
        return small_loss(t, given, replica, step);
      };
      auto minimizing = buckets ? optimizer.minimize(context, loss, *buckets)
                                : optimizer.minimize(context, loss, variables);
      auto value = co_await minimizing;
      CHECK(std::isfinite(value));
    });
  return values_of(strategy);
}

void for_every_split(const std::function<void(strategy&)>& program) {
  for (uint32_t processes : {1U, 2U, 4U}) {
    CAPTURE(processes);
    auto thrown = play(processes, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(4 / processes)};
      program(strategy);
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
  }
}

} // namespace

TEST_SUITE("strategies/contexts/gradient_buckets") {
  TEST_CASE("buckets take the last variables first, until they are full, of one dtype each") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto variables = make_variables(strategy); // of 24, 36, 48, 120 and 72 bytes
    CHECK(gradient_buckets{strategy, variables}.layout() == layout{{4}, {3}, {2, 1, 0}});
    CHECK(gradient_buckets{strategy, variables, 1}.layout() == layout{{4}, {3}, {2}, {1}, {0}});
    CHECK(gradient_buckets{strategy, variables, 48}.layout() == layout{{4}, {3}, {2, 1}, {0}});
  }

  TEST_CASE("training in buckets ends with the bits of training without") {
    auto world = world::threads({.seed = 5, .threads = 2});
    mirrored_strategy mirrored{world, {cpu_devices(4)}};
    auto expected = trained_together(mirrored);
    for (size_t bytes : {1U, 50U, 100000U}) {
      CAPTURE(bytes);
      for_every_split(
        [&](strategy& strategy) { CHECK(trained_in_buckets(strategy, bytes) == expected); });
    }
  }

  TEST_CASE("a loss that is minimized in buckets has the gradients of one that is not") {
    auto world = world::threads({.seed = 5, .threads = 2});
    mirrored_strategy mirrored{world, {cpu_devices(4)}};
    auto expected = minimized(mirrored, 0);
    for (size_t bytes : {1U, 100000U}) {
      CAPTURE(bytes);
      for_every_split([&](strategy& strategy) {
        auto values = minimized(strategy, bytes);
        for (size_t i = 0; i < values.size(); ++i)
          for (size_t j = 0; j < values[i].size(); ++j)
            CHECK(values[i][j] == doctest::Approx(expected[i][j]).epsilon(1e-6));
      });
    }
  }

  TEST_CASE("rows leave as the array that they are rows of, if they are") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    auto table = strategy.make_variable("t", zeros({3, 2}));
    auto counts = strategy.make_variable("c", zeros({3}, dtype::i64));
    gradient_buckets buckets{strategy, {table}};
    gradient_buckets others{strategy, {counts}};
    tensor rows{dtype::i64, {2}};
    std::ranges::fill(rows.mutable_values<int64_t>(), 2);
    auto sums = strategy.run([=](replica_context& context) -> task<numbers> {
      auto marker = buckets.begin(context);
      auto refusal = [&](const tensor& which, const tensor& values) {
        return refusal_of([&] { marker.ready(table, indexed_slices{which, values, {}}); });
      };
      CHECK(
        refusal(rows, zeros({3, 2}))
        == error{errc::invalid_argument,
                 "a gradient of variable 't' has 2 numbers of rows, and 6 numbers for rows of 2"});
      auto beyond = rows.clone();
      beyond.mutable_values<int64_t>()[1] = 3;
      CHECK(refusal(beyond, zeros({2, 2}))
            == error{errc::invalid_argument, "a gradient of variable 't' has row 3; there are 3"});
      CHECK(refusal_of([&] {
              others.begin(context).ready(counts, indexed_slices{rows, zeros({2}, dtype::i64), {}});
            })
            == error{errc::type_mismatch,
                     "variable 'c' is i64; rows are gradients of f32 and f64 alone"});
      marker.ready(table, indexed_slices{rows, array({2, 2}, {1, 2, 10, 20}), {}});
      auto reducing = buckets.reduced(context);
      auto reduced = co_await reducing;
      co_return numbers_of(std::get<tensor>(reduced[0].gradient));
    });
    auto spread = mapped<double>(sums, [](const auto& one) { return one.primary(); });
    CHECK(spread == numbers{0, 0, 0, 0, 11, 22});
  }

  TEST_CASE("a full bucket is reduced while the rest is computed") {
    for_every_split([](strategy& strategy) {
      std::vector<variable> variables{strategy.make_variable("first", zeros({2})),
                                      strategy.make_variable("last", zeros({2}))};
      gradient_buckets buckets{strategy, variables, 1};
      auto sums = strategy.run([=](replica_context& context) -> task<double> {
        auto marker = buckets.begin(context);
        marker.ready(variables[1], array({2}, {1, 2}));
        auto is_last = context.replica_id_in_sync_group() % context.strategy().num_local_replicas()
                       == context.strategy().num_local_replicas() - 1;
        auto computing = context.compute([=](std::stop_token) {
          auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
          while (is_last && buckets.settled() == 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
          CHECK((!is_last || buckets.settled() == 1));
          marker.ready(variables[0], array({2}, {10, 20}));
          return true;
        });
        co_await computing;
        auto reducing = buckets.reduced(context);
        auto reduced = co_await reducing;
        CHECK(reduced[0].variable == variables[0]);
        co_return numbers_of(std::get<tensor>(reduced[0].gradient))[0]
          + numbers_of(std::get<tensor>(reduced[1].gradient))[1];
      });
      CHECK(sums[0] == 40 + 8);
    });
  }

  TEST_CASE("a bucket of large and small gradients has the sums of each") {
    for_every_split([](strategy& strategy) {
      constexpr int64_t many = lone_bytes / sizeof(float);
      std::vector<variable> variables;
      for (int64_t elements : {int64_t{3}, many, int64_t{2}, many + 1})
        variables.push_back(strategy.make_variable(std::to_string(elements), zeros({elements})));
      gradient_buckets buckets{strategy, variables, 16 * lone_bytes};
      CHECK(buckets.layout() == layout{{3, 2, 1, 0}});
      strategy.run([=](replica_context& context) -> task<void> {
        auto marker = buckets.begin(context);
        for (size_t i = 0; i < variables.size(); ++i)
          marker.ready(variables[i],
                       filled(dtype::f32, variables[i].extents(), static_cast<double>(i + 1)));
        auto reducing = buckets.reduced(context);
        auto reduced = co_await reducing;
        for (size_t i = 0; i < variables.size(); ++i) {
          auto sum = std::get<tensor>(reduced[i].gradient).contiguous();
          CHECK(sum.extents() == variables[i].extents());
          auto is_sum = [&](float value) { return value == 4 * static_cast<float>(i + 1); };
          CHECK(std::ranges::all_of(sum.values<float>(), is_sum));
        }
      });
    });
  }

  TEST_CASE("16-bit gradients are added in the dtype of their variable") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(3)}};
    auto weights = strategy.make_variable("w", zeros({1}));
    gradient_buckets buckets{strategy, {weights}};
    auto sums = strategy.run([=](replica_context& context) -> task<double> {
      auto marker = buckets.begin(context);
      tensor narrow_one{dtype::f16, {1}};
      narrow_one.mutable_values<float16>()[0]
        = narrow<float16>(context.replica_id_in_sync_group() == 0 ? 2048.0 : 1.0);
      marker.ready(weights, narrow_one);
      auto reducing = buckets.reduced(context);
      auto reduced = co_await reducing;
      co_return numbers_of(std::get<tensor>(reduced[0].gradient))[0];
    });
    CHECK(sums[0] == 2050);
  }

  TEST_CASE("gradients that do not belong there are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    auto weights = strategy.make_variable("w", zeros({2}));
    auto other = strategy.make_variable("v", zeros({2}));
    gradient_buckets buckets{strategy, {weights}};
    strategy.run([=](replica_context& context) {
      auto marker = buckets.begin(context);
      auto refusal = [&](const variable& of, const tensor& value) {
        return refusal_of([&] { marker.ready(of, value); });
      };
      CHECK(refusal(other, zeros({2}))
            == error{errc::invalid_argument, "variable 'v' is in none of the gradient buckets"});
      CHECK(refusal(weights, zeros({3}))
            == error{errc::invalid_argument, "a gradient of variable 'w' has shape [3], not [2]"});
      CHECK(refusal(weights, zeros({2}, dtype::f64))
            == error{errc::type_mismatch,
                     "a gradient of variable 'w' is f64, which does not widen to f32"});
      marker.ready(weights, zeros({2}));
      CHECK(refusal(weights, zeros({2}))
            == error{errc::failed_precondition,
                     "the gradient of variable 'w' of replica 0 is ready twice"});
      CHECK(refusal_of([&] { static_cast<void>(buckets.begin(context)); }).code
            == errc::failed_precondition);
    });
  }

  TEST_CASE("variables that make no buckets are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    mirrored_strategy another{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    gradient_buckets buckets{strategy, {weights}};
    another.run([=](replica_context& context) {
      CHECK(refusal_of([&] { static_cast<void>(buckets.begin(context)); })
            == error{errc::invalid_argument, "gradient buckets of another strategy; make them for "
                                             "the one whose replicas compute the gradients"});
    });
    CHECK(refusal_of([&] {
            another.run([=](replica_context& context) -> task<void> {
              auto reducing = buckets.reduced(context);
              co_await reducing;
            });
          }).code
          == errc::invalid_argument);
    CHECK(refusal_of([&] { gradient_buckets{strategy, {}}; }).code == errc::invalid_argument);
    CHECK(refusal_of([&] {
            gradient_buckets{strategy, {weights, weights}};
          })
          == error{errc::invalid_argument, "variable 'w' is given twice"});
    CHECK(refusal_of([&] { gradient_buckets{another, {weights}}; }).code == errc::invalid_argument);
  }

  TEST_CASE("a gradient that is missing is named") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    gradient_buckets buckets{strategy, {weights}};
    auto why = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        auto marker = buckets.begin(context);
        if (context.replica_id_in_sync_group() == 0) marker.ready(weights, zeros({2}));
        auto reducing = buckets.reduced(context);
        co_await reducing;
      });
    });
    CHECK(why
          == error{errc::failed_precondition, "the gradient of variable 'w' of replica 1 is not "
                                              "ready; mark it before `reduced`"});
  }

  TEST_CASE("an optimizer that accumulates takes no gradients that are reduced") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world};
    auto weights = strategy.make_variable("w", zeros({2}));
    optimizer optimizer{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
    auto why = strategy.run([=](replica_context& context) -> task<error> {
      std::vector<gradient_and_variable> one{{zeros({2}), weights}};
      auto applying = refusal_in(optimizer.apply_reduced_gradients(context, one));
      auto reason = co_await applying;
      co_return reason;
    });
    CHECK(why.primary().code == errc::failed_precondition);
  }
}

} // namespace gradient_buckets_test
