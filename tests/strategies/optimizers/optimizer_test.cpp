// SPDX-License-Identifier: Apache-2.0
// Goal: in a run, one call combines the gradients of all replicas and applies them. Method: every
// strategy, in both worlds; sums that can be done in the head.
#include "kernels/math/cast.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/metrics.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/small_job.hpp"

#include <cmath>

namespace optimizer_test {

using namespace troupe;
using namespace troupe::test;

namespace {

tensor filled_with(float value) {
  return make_tensor({2}, {value, value});
}

float first_of(const tensor& values) {
  return values.values<float>()[0];
}

// Each replica applies gradients of 1, 2, ... so many times.
void apply_own(strategy& strategy, const optimizer& with, const variable& to, int times = 1) {
  strategy.run([=](replica_context& context) -> task<void> {
    for (int i = 0; i < times; ++i) {
      auto own = static_cast<float>(context.replica_id_in_sync_group() + 1);
      auto applying = with.apply_gradients(context, filled_with(own), to);
      co_await applying;
    }
  });
}

// Each replica applies the gradient that `gradient_of(replica)` returns.
template <class Function>
void apply_each(strategy& strategy, const optimizer& with, const variable& to,
                Function gradient_of) {
  strategy.run([=](replica_context& context) -> task<void> {
    auto applying
      = with.apply_gradients(context, gradient_of(context.replica_id_in_sync_group()), to);
    co_await applying;
  });
}

indexed_slices one_row(int64_t row, float value) {
  tensor index{dtype::i64, {1}};
  index.mutable_values<int64_t>()[0] = row;
  return {index, make_tensor({1, 1}, {value}), {4, 1}};
}

} // namespace

TEST_SUITE("strategies/optimizers/optimizer") {
  TEST_CASE("gradients of all replicas are summed, or averaged, and applied once") {
    for_every_strategy([](strategy& strategy) {
      auto n = static_cast<float>(strategy.num_replicas_in_sync());
      auto summed = strategy.make_variable("summed", zeros({2}));
      apply_own(strategy, optimizer{rules::sgd{.learning_rate = 1}}, summed);
      CHECK(first_of(strategy.read(summed)) == -n * (n + 1) / 2);
      auto averaged = strategy.make_variable("averaged", zeros({2}));
      apply_own(strategy, optimizer{rules::sgd{.learning_rate = 1}, {reduce_op::mean}}, averaged);
      CHECK(first_of(strategy.read(averaged)) == -(n + 1) / 2);
    });
  }

  TEST_CASE("gradients of several batches are averaged before an update is made") {
    for_every_strategy([](strategy& strategy) {
      auto n = static_cast<float>(strategy.num_replicas_in_sync());
      auto weights = strategy.make_variable("w", zeros({2}));
      optimizer every_third{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 3}};
      apply_own(strategy, every_third, weights, 2);
      CHECK(first_of(strategy.read(weights)) == 0);
      apply_own(strategy, every_third, weights, 1);
      CHECK(first_of(strategy.read(weights)) == -n * (n + 1) / 2);
    });
  }

  TEST_CASE("a clip by the global norm cuts all gradients alike") {
    for_every_strategy([](strategy& strategy) {
      auto a = strategy.make_variable("a", zeros({2}));
      auto b = strategy.make_variable("b", zeros({2}));
      optimizer clipping{rules::sgd{.learning_rate = 1},
                         {.aggregation = reduce_op::mean, .clip_global_norm = 1}};
      strategy.run([=](replica_context& context) -> task<void> {
        std::vector<gradient_and_variable> both{{make_tensor({2}, {3, 0}), a},
                                                {make_tensor({2}, {0, 4}), b}};
        auto applying = clipping.apply_gradients(context, both);
        co_await applying;
      });
      CHECK(strategy.read(a).values<float>()[0] == doctest::Approx(-0.6));
      CHECK(strategy.read(b).values<float>()[1] == doctest::Approx(-0.8));
    });
  }

  TEST_CASE("the slots of an optimizer go on from run to run") {
    for_every_strategy([](strategy& strategy) {
      auto weights = strategy.make_variable("w", zeros({2}));
      optimizer adam{rules::adam{.learning_rate = 0.1}, {reduce_op::mean}};
      for (int step = 0; step < 3; ++step)
        apply_own(strategy, adam, weights);
      CHECK(first_of(strategy.read(weights)) == doctest::Approx(-0.3)); // equal gradients: lr each
    });
  }

  TEST_CASE("optimizers that take turns make their own updates, each by its rule") {
    for_every_strategy([](strategy& strategy) {
      auto n = static_cast<float>(strategy.num_replicas_in_sync());
      auto weights = strategy.make_variable("w", zeros({2}));
      optimizer slow{rules::sgd{.learning_rate = 1}, {reduce_op::mean}};
      optimizer fast{rules::sgd{.learning_rate = 10}, {reduce_op::mean}};
      for (const auto& each : {slow, fast, slow, slow, fast})
        apply_own(strategy, each, weights);
      CHECK(first_of(strategy.read(weights)) == -23 * (n + 1) / 2);
    });
  }

  TEST_CASE("one optimizer serves two worlds, one after the other and side by side") {
    optimizer momentum{rules::momentum{.learning_rate = 1}};
    auto apply_in = [&](world world) {
      one_device_strategy strategy{world, "cpu:0"};
      auto weights = strategy.make_variable("w", zeros({2}));
      apply_own(strategy, momentum, weights, 2);
      return first_of(strategy.read(weights));
    };
    CHECK(apply_in(world::virtual_time()) == doctest::Approx(-2.9));
    CHECK(apply_in(world::virtual_time()) == doctest::Approx(-2.9));
    auto other = world::virtual_time();
    one_device_strategy beside{other, "cpu:0"};
    auto weights = beside.make_variable("w", zeros({2}));
    apply_own(beside, momentum, weights);
    CHECK(apply_in(world::virtual_time()) == doctest::Approx(-2.9));
    apply_own(beside, momentum, weights);
    CHECK(first_of(beside.read(weights)) == doctest::Approx(-2.9));
  }

  TEST_CASE("sparse gradients change the rows that replicas have") {
    for_every_strategy([](strategy& strategy) {
      auto table = strategy.make_variable("table", zeros({4, 1}));
      optimizer sgd{rules::sgd{.learning_rate = 1}};
      strategy.run([=](replica_context& context) -> task<void> {
        auto row = static_cast<int64_t>(context.replica_id_in_sync_group() % 2);
        auto applying = sgd.apply_gradients(context, one_row(row, 1), table);
        co_await applying;
      });
      auto n = static_cast<float>(strategy.num_replicas_in_sync());
      auto values = strategy.read(table);
      CHECK(values.values<float>()[0] == -std::ceil(n / 2));
      CHECK(values.values<float>()[1] == -std::floor(n / 2));
      CHECK(values.values<float>()[2] == 0);
    });
  }

  TEST_CASE("rows may have i32 numbers, and not say of what array they are") {
    for_every_strategy([](strategy& strategy) {
      auto table = strategy.make_variable("table", zeros({4, 1}));
      optimizer sgd{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
      strategy.run([=](replica_context& context) -> task<void> {
        indexed_slices terse{array({2}, {1, 3}, dtype::i32), array({2, 1}, {1, 2}), {}};
        auto terse_first = sgd.apply_gradients(context, terse, table);
        co_await terse_first;
        auto then_whole = sgd.apply_gradients(context, one_row(1, 1), table);
        co_await then_whole;
      });
      double n = strategy.num_replicas_in_sync();
      CHECK(numbers_of(strategy.read(table)) == numbers{0, -n, 0, -n});
    });
  }

  TEST_CASE("rows that say of what array they are must be right") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto table = strategy.make_variable("table", zeros({4, 1}));
    optimizer sgd{rules::sgd{}};
    auto refused = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        auto applying = sgd.apply_gradients(context, rows_of({1}, {1}, 5), table);
        co_await applying;
      });
    });
    CHECK(refused.message
          == "Shape mismatch: variable 'table' has shape [4, 1], its gradient's dense shape is "
             "[5, 1]");
  }

  TEST_CASE("gradients of a narrower dtype are added in that of their variable") {
    auto number = [](uint32_t replica) { return replica == 0 ? 2048.0 : 1.0; }; // f16 has no 2049
    auto narrow_one = [=](uint32_t replica) {
      return cast(array({1, 1}, {number(replica)}), dtype::f16);
    };
    for_every_strategy([&](strategy& strategy) {
      auto expected = -2047.0 - strategy.num_replicas_in_sync();
      optimizer sgd{rules::sgd{.learning_rate = 1}};
      for (auto type : {dtype::f32, dtype::f64}) {
        auto table = strategy.make_variable(std::string{to_string(type)}, zeros({4, 1}, type));
        apply_each(strategy, sgd, table, [=](uint32_t replica) -> gradient {
          return indexed_slices{array({1}, {2}, dtype::i64), narrow_one(replica), {4, 1}};
        });
        CHECK(numbers_of(strategy.read(table)) == numbers{0, 0, expected, 0});
      }
      auto weights = strategy.make_variable("w", zeros({1, 1}));
      optimizer every_second{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
      for (const auto& each : {sgd, every_second, every_second})
        apply_each(strategy, each, weights, narrow_one);
      CHECK(numbers_of(strategy.read(weights)) == numbers{2 * expected});
    });
  }

  TEST_CASE("gradients that their variable cannot hold are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    for (auto type : {dtype::f64, dtype::i32})
      CHECK(refusal_of([&] {
              apply_each(strategy, optimizer{rules::sgd{}}, weights,
                         [=](uint32_t) { return zeros({2}, type); });
            })
            == error{errc::type_mismatch,
                     "variable 'w' is f32, its gradient " + std::string{to_string(type)}});
  }

  TEST_CASE("an optimizer whose gradients are refused takes no variable from another one") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    auto counter = strategy.make_variable("n", zeros({2}, dtype::i64));
    optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
    optimizer adam{rules::adam{}};
    auto refused = [&](const std::vector<gradient_and_variable>& gradients) {
      return refusal_of([&] {
        strategy.run([=](replica_context& context) -> task<void> {
          auto applying = adam.apply_gradients(context, gradients);
          co_await applying;
        });
      });
    };
    apply_own(strategy, momentum, weights);
    CHECK(refused({{zeros({2}, dtype::i32), weights}}).code == errc::type_mismatch);
    CHECK(refused({{filled_with(1), weights}, {zeros({2}, dtype::i64), counter}}).code
          == errc::type_mismatch);
    apply_own(strategy, momentum, weights);
    CHECK(first_of(strategy.read(weights)) == -3.75F); // 1.5, then 0.75 + 1.5
  }

  TEST_CASE("an optimizer that the owner of one variable refuses leaves all to the one before") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    auto total = strategy.make_variable("total", zeros({2}),
                                        {.synchronization = variable_synchronization::on_read,
                                         .aggregation = variable_aggregation::sum});
    optimizer momentum{rules::momentum{.learning_rate = 1, .decay = 0.5}, {reduce_op::mean}};
    optimizer averaging{update_plan{.rule = rules::sgd{}, .average = moving_average{}}};
    apply_own(strategy, momentum, weights);
    for (int i = 0; i < 2; ++i)
      CHECK(refusal_of([&] {
              strategy.run([=](replica_context& context) -> task<void> {
                std::vector<gradient_and_variable> both{{filled_with(1), weights},
                                                        {filled_with(1), total}};
                auto applying = averaging.apply_gradients(context, both);
                co_await applying;
              });
            }).code
            == errc::unimplemented);
    apply_own(strategy, momentum, weights);
    CHECK(first_of(strategy.read(weights)) == -3.75F); // 1.5, then 0.75 + 1.5
  }

  TEST_CASE("a variable of integers is refused each time with the same line") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto counter = strategy.make_variable("n", zeros({2}, dtype::i64));
    optimizer sgd{rules::sgd{}};
    for (int i = 0; i < 3; ++i)
      CHECK(refusal_of([&] {
              apply_each(strategy, sgd, counter, [](uint32_t) { return zeros({2}, dtype::i64); });
            })
            == error{errc::type_mismatch,
                     "variable 'n' is i64; an optimizer updates f32 and f64 only"});
  }

  TEST_CASE("replicas that bring gradients of different variables are told so") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto a = strategy.make_variable("a", zeros({2}));
    auto b = strategy.make_variable("b", zeros({2}));
    optimizer sgd{rules::sgd{}};
    auto refused = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        auto own = context.replica_id_in_sync_group() == 0 ? a : b;
        auto applying = sgd.apply_gradients(context, filled_with(1), own);
        co_await applying;
      });
    });
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message
          == "replica 1 brings the gradients of other variables than replica 0: as number 1 that "
             "of 'b', not that of 'a'; all replicas have to apply the same, in one order");
  }

  TEST_CASE("the first gradient that differs between replicas is named, or that one is missing") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    std::vector<variable> variables;
    for (const auto* name : {"a", "b", "c"})
      variables.push_back(strategy.make_variable(name, zeros({2})));
    optimizer sgd{rules::sgd{}};
    auto refused = [&](std::vector<size_t> of_first, std::vector<size_t> of_second) {
      return refusal_of([&] {
               strategy.run([=](replica_context& context) -> task<void> {
                 std::vector<gradient_and_variable> own;
                 for (auto i : context.replica_id_in_sync_group() == 0 ? of_first : of_second)
                   own.push_back({filled_with(1), variables[i]});
                 auto applying = sgd.apply_gradients(context, own);
                 co_await applying;
               });
             })
        .message;
    };
    const std::string begin = "replica 1 brings the gradients of other variables than replica 0: ";
    const std::string end = "; all replicas have to apply the same, in one order";
    CHECK(refused({0, 2}, {0, 1}) == begin + "as number 2 that of 'b', not that of 'c'" + end);
    CHECK(refused({0, 1}, {0}) == begin + "as number 2 none, not that of 'b'" + end);
    CHECK(refused({0}, {0, 1}) == begin + "as number 2 that of 'b', not none" + end);
  }

  TEST_CASE("after a run that failed, replicas accumulate batches together again") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    optimizer every_second{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
    auto refused = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        if (context.replica_id_in_sync_group() == 1)
          throw failure{{errc::resource, "a record cannot be read"}};
        auto applying = every_second.apply_gradients(context, filled_with(100), weights);
        co_await applying;
      });
    });
    CHECK(refused.message == "a record cannot be read");
    apply_own(strategy, every_second, weights);
    CHECK(first_of(strategy.read(weights)) == 0);
    apply_own(strategy, every_second, weights);
    CHECK(first_of(strategy.read(weights)) == -3);
  }

  TEST_CASE("a strategy does not go on with the batches of one that stood in the same place") {
    auto world = world::virtual_time();
    optimizer every_second{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
    for (int i = 0; i < 2; ++i) {
      mirrored_strategy strategy{world, {cpu_devices(2)}};
      auto weights = strategy.make_variable("w", zeros({2}));
      for (float expected : {0, -3, -3}) { // each ends within an update
        apply_own(strategy, every_second, weights);
        CHECK(first_of(strategy.read(weights)) == expected);
      }
    }
  }

  TEST_CASE("a batch that cannot be added to those before names its variable, and adds nothing") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    optimizer every_second{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
    const std::pair<gradient, std::string> batches[] = {
      {zeros({3}), "Shape mismatch: variable 'w' has shape [2], its gradient's is [3]"},
      {rows_of({1}, {1}, 5), "Shape mismatch: variable 'w' has shape [2], its gradient's dense "
                             "shape is [5, 1]"},
      {zeros({2}, dtype::f64), "the gradient of variable 'w' is f32 in one batch and f64 in the "
                               "next; all batches of an update need gradients of one dtype"},
      {indexed_slices{array({1}, {1}, dtype::i64), zeros({1}), {2}},
       "the gradient of variable 'w' is dense in one batch and sparse in another; all batches of "
       "an update need gradients of one kind"},
      {indexed_slices{array({1}, {1}, dtype::i64), zeros({2}), {2}},
       "the gradient of variable 'w' has rows with numbers of shape [1] and values of shape [2]; "
       "numbers have shape [rows], and values as many rows"}};
    strategy.run([&](replica_context& context) -> task<void> {
      auto first = every_second.apply_gradients(context, filled_with(1), weights);
      co_await first;
      for (const auto& [batch, message] : batches) {
        std::string refused;
        try {
          auto applying = every_second.apply_gradients(context, batch, weights);
          co_await applying;
        } catch (const failure& why) {
          refused = why.what();
        }
        CHECK(refused == message);
      }
      auto second = every_second.apply_gradients(context, filled_with(1), weights);
      co_await second;
    });
    CHECK(first_of(strategy.read(weights)) == -2);
  }

  TEST_CASE("a gradient of a variable of another strategy is refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    mirrored_strategy other{world, {cpu_devices(2)}};
    auto theirs = other.make_variable("theirs", zeros({2}));
    CHECK(refusal_of([&] { apply_own(strategy, optimizer{rules::sgd{}}, theirs); })
          == error{errc::invalid_argument,
                   "apply_gradients was called for variable 'theirs', which another strategy made; "
                   "use a variable of this one"});
    CHECK(first_of(other.read(theirs)) == 0);
  }

  TEST_CASE("two gradients of a variable are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", zeros({2}));
    optimizer sgd{rules::sgd{}};
    auto refused = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        std::vector<gradient_and_variable> both{{filled_with(1), weights},
                                                {filled_with(2), weights}};
        auto applying = sgd.apply_gradients(context, both);
        co_await applying;
      });
    });
    CHECK(refused.code == errc::invalid_argument);
    CHECK(refused.message
          == "apply_gradients got two gradients for variable 'w'; give their sum or mean");
  }

  TEST_CASE("strategies that share an optimizer accumulate their own batches") {
    auto world = world::virtual_time();
    mirrored_strategy one{world, {cpu_devices(2)}};
    mirrored_strategy other{world, {cpu_devices(2)}};
    auto first = one.make_variable("w", zeros({2}));
    auto second = other.make_variable("w", zeros({2}));
    optimizer every_other{rules::sgd{.learning_rate = 1}, {.accumulation_steps = 2}};
    apply_own(one, every_other, first);
    apply_own(other, every_other, second);
    CHECK(first_of(one.read(first)) == 0);
    CHECK(first_of(other.read(second)) == 0);
    apply_own(one, every_other, first);
    CHECK(first_of(one.read(first)) == -3);
    CHECK(first_of(other.read(second)) == 0);
  }

  TEST_CASE("an empty loss is refused where it is given") {
    std::function<expression(tape&, std::span<const expression>)> none;
    CHECK(refusal_of([&] { static_cast<void>(loss_function{none}); })
          == error{errc::invalid_argument, "a loss was given an empty function"});
  }

  TEST_CASE("no gradient, and settings that cannot be, are refused") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    optimizer sgd{rules::sgd{}};
    auto refused = refusal_of([&] {
      strategy.run([=](replica_context& context) -> task<void> {
        std::vector<gradient_and_variable> none;
        auto applying = sgd.apply_gradients(context, none);
        co_await applying;
      });
    });
    CHECK(refused.message
          == "No gradients provided for any variable: apply_gradients got no gradient");
    CHECK(refusal_of([] {
            optimizer{rules::sgd{}, {.accumulation_steps = 0}};
          }).code
          == errc::invalid_argument);
    CHECK(refusal_of([] { optimizer{rules::sgd{.learning_rate = -1}}; }).code
          == errc::invalid_argument);
  }

  TEST_CASE("metrics add up what all replicas have seen, and forget it when asked") {
    for_every_strategy([](strategy& strategy) {
      auto n = strategy.num_replicas_in_sync();
      mean_metric mean{strategy, "mean"};
      sum_metric sum{strategy, "sum"};
      accuracy_metric accuracy{strategy, "accuracy"};
      CHECK(mean.result() == 0);
      strategy.run([=](replica_context& context) -> task<void> {
        auto own = 1.0 + context.replica_id_in_sync_group();
        auto averaging = mean.update_state(context, own, 2);
        co_await averaging;
        auto summing = sum.update_state(context, own);
        co_await summing;
        auto labels = zeros({4}, dtype::i64);
        auto scores = make_tensor({4, 2}, {1, 0, 0, 1, 0, NAN, 2, 1});
        auto scoring = accuracy.update_state(context, scores, labels); // NaN is no right answer
        co_await scoring;
      });
      CHECK(mean.result() == (n + 1) / 2.0);
      CHECK(sum.result() == n * (n + 1) / 2.0);
      CHECK(accuracy.result() == 0.5);
      mean.reset_state();
      CHECK(mean.result() == 0);
    });
  }
}

} // namespace optimizer_test
