// SPDX-License-Identifier: Apache-2.0
// Goal: averages are those of TensorFlow's ExponentialMovingAverage. Method: the numbers of its own
// tests (tensorflow/python/training/moving_averages_test.py) for tensors, a job beside a plain loop
// for variables.
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/exponential_moving_average.hpp"
#include "tests/strategies/small_job.hpp"

namespace exponential_moving_average_test {

using namespace troupe;
using namespace troupe::test;

namespace {

float first(const std::optional<tensor>& average) {
  REQUIRE(average);
  return average->values<float>()[0];
}

errc refusal(auto call) {
  try {
    call();
  } catch (const failure& failed) {
    return failed.reason().code;
  }
  return errc::none;
}

/// Two variables that a job of one replica raises by 1 with every step, and the job itself.
struct averaged_job {
  explicit averaged_job(uint64_t steps, average_choice averages = {})
    : optimizer(update_plan{.rule = rules::sgd{.learning_rate = 1}}, {1, 1}, std::move(averages)) {
    train(strategy, optimizer,
          [this](replica_context& context) -> task<void> {
            std::vector<gradient_and_variable> gradients{{make_tensor({1}, {-1}), a},
                                                         {make_tensor({1}, {-1}), b}};
            auto applying = optimizer.apply_gradients(context, gradients);
            co_await applying;
          },
          {.steps = steps});
  }

  troupe::world world = world::virtual_time({});
  parameter_server_strategy strategy{world, {.replicas = 1}};
  variable a = strategy.make_variable("a", make_tensor({1}, {10}));
  variable b = strategy.make_variable("b", make_tensor({1}, {30}));
  sync_replicas_optimizer optimizer;
};

} // namespace

TEST_SUITE("strategies/variables/exponential_moving_average") {
  TEST_CASE("the average of a tensor begins at 0") {
    exponential_moving_average average{0.25};
    CHECK_FALSE(average.average("sum"));
    average.apply("sum", make_tensor({1}, {40}));
    CHECK(first(average.average("sum")) == 40 * 0.75F);
    average.apply("sum", make_tensor({1}, {40}));
    CHECK(first(average.average("sum")) == 40 * 0.75F * 0.25F + 40 * 0.75F);
  }

  TEST_CASE("an array with gaps between its elements has an average, too") {
    exponential_moving_average average{0.5};
    average.apply("turned", make_tensor({2, 2}, {2, 4, 6, 8}).transpose());
    auto kept = *average.average("turned");
    auto values = kept.values<float>();
    CHECK(std::vector<float>{values.begin(), values.end()} == std::vector<float>{1, 3, 2, 4});
  }

  TEST_CASE("a correction makes the average of a constant that constant from the first update on") {
    for (bool num_updates : {false, true}) {
      exponential_moving_average average{0.25, {.num_updates = num_updates, .zero_debias = true}};
      average.apply("sum", make_tensor({1}, {40}));
      CHECK(first(average.average("sum")) == doctest::Approx(40));
    }
    exponential_moving_average average{0.25, {.zero_debias = true}};
    for (int i = 0; i < 5; ++i)
      average.apply("sum", make_tensor({1}, {40}));
    CHECK(first(average.average("sum")) == doctest::Approx(40));
  }

  TEST_CASE("an average that counts updates begins with a decay of 2 / 11") {
    exponential_moving_average average{0.25, {.num_updates = true}};
    average.apply("sum", make_tensor({1}, {40}));
    CHECK(first(average.average("sum")) == doctest::Approx(40 * (1 - 2.0 / 11)));
  }

  TEST_CASE("averages have the type of their tensors, or f32 for 16 bits") {
    exponential_moving_average average{0.5};
    average.apply("wide", zeros({2}, dtype::f64));
    CHECK(average.average("wide")->type() == dtype::f64);
    tensor half{dtype::f16, {1}};
    half.mutable_values<float16>()[0] = to_float16(4);
    average.apply("half", half);
    CHECK(first(average.average("half")) == 2);
    CHECK(refusal([&] {
            average.apply("integers", tensor{dtype::i32, {1}});
          })
          == errc::type_mismatch);
    CHECK(refusal([&] { average.apply("wide", zeros({2})); }) == errc::type_mismatch);
    CHECK(refusal([&] { average.apply("wide", zeros({3}, dtype::f64)); })
          == errc::invalid_argument);
  }

  TEST_CASE("a decay or a name that cannot work is refused") {
    CHECK(refusal([] { exponential_moving_average{1.5}; }) == errc::invalid_argument);
    CHECK(refusal([] { exponential_moving_average{0.5, {.name = ""}}; }) == errc::invalid_argument);
  }

  TEST_CASE("averages have names before they are kept") {
    averaged_job job{1};
    exponential_moving_average average{0.5};
    CHECK(average.average_name(job.a) == "a/ExponentialMovingAverage");
    CHECK_FALSE(average.average(job.strategy, job.a));
    CHECK(exponential_moving_average{0.5, {.name = "mean"}}.average_name("sum") == "sum/mean");
  }

  TEST_CASE("owners keep the averages of all variables of a job") {
    exponential_moving_average average{0.75};
    averaged_job job{4, {.variable_averages = average.settings()}};
    float value = 10, shadow = 10;
    for (int step = 0; step < 4; ++step) {
      value += 1;
      shadow -= 0.25F * (shadow - value);
    }
    CHECK(first(average.average(job.strategy, job.a)) == shadow);
    CHECK(first(average.average(job.strategy, job.b)) == doctest::Approx(shadow + 20));
    CHECK_FALSE(exponential_moving_average{0.75, {.name = "other"}}.average(job.strategy, job.a));
  }

  TEST_CASE("averages follow what a mirrored strategy's optimizer makes of its variables") {
    auto world = world::virtual_time({});
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    auto weights = strategy.make_variable("w", make_tensor({1}, {10}));
    exponential_moving_average average{0.75};
    optimizer sgd{
      update_plan{.rule = rules::sgd{.learning_rate = 1}, .average = average.settings()},
      {reduce_op::mean}};
    float value = 10, shadow = 10;
    for (int step = 0; step < 4; ++step) {
      strategy.run([=](replica_context& context) -> task<void> {
        auto own = -0.5F - static_cast<float>(context.replica_id_in_sync_group()); // -1 on average
        auto applying = sgd.apply_gradients(context, make_tensor({1}, {own}), weights);
        co_await applying;
      });
      value += 1;
      shadow -= 0.25F * (shadow - value);
      CHECK(first(average.average(strategy, weights)) == shadow);
    }
    CHECK_FALSE(exponential_moving_average{0.75, {.name = "other"}}.average(strategy, weights));
  }

  TEST_CASE("a variable that is synchronised on read has no average") {
    auto world = world::virtual_time({});
    mirrored_strategy strategy{world, {cpu_devices(2)}};
    exponential_moving_average average{0.75};
    auto update_with = [&](const variable& weights, const update_plan& plan) {
      return refusal_of([&] {
        strategy.run([=, with = optimizer{plan}](replica_context& context) -> task<void> {
          auto applying = with.apply_gradients(context, make_tensor({1}, {1}), weights);
          co_await applying;
        });
      });
    };
    update_plan plan{.rule = rules::sgd{.learning_rate = 1}};
    auto averaged = plan;
    averaged.average = average.settings();
    for (auto mode : {variable_aggregation::none, variable_aggregation::sum,
                      variable_aggregation::mean, variable_aggregation::only_first_replica}) {
      auto name = std::string{to_string(mode)};
      auto weights = strategy.make_variable(name, make_tensor({1}, {10}),
                                            {.synchronization = variable_synchronization::on_read,
                                             .aggregation = mode,
                                             .trainable = true});
      CHECK(update_with(weights, averaged)
            == error{errc::unimplemented,
                     "variable '" + name
                       + "' is synchronised on read, which does not go together with an average; "
                         "make it ON_WRITE, or leave out its average"});
      CHECK_FALSE(average.average(strategy, weights));
      CHECK(update_with(weights, plan) == error{});
    }
  }

  TEST_CASE("averages are kept only of variables that are named, however often") {
    exponential_moving_average average{0.75};
    averaged_job job{1};
    sync_replicas_optimizer chosen{update_plan{}, {1, 1}, {average.settings(), {job.b, job.b}}};
    CHECK_FALSE(chosen.plan_for(job.a).average);
    CHECK(chosen.plan_for(job.b).average->name == "ExponentialMovingAverage");
    sync_replicas_optimizer ignored{update_plan{}, {1, 1}, {{}, {job.b}}};
    CHECK_FALSE(ignored.plan_for(job.b).average);
  }

  TEST_CASE("an average of what the job does not train is refused, naming it") {
    exponential_moving_average average{0.75};
    averaged_job job{1};
    sync_replicas_optimizer of_b{update_plan{}, {1, 1}, {average.settings(), {job.b}}};
    CHECK(refusal_of([&] { of_b.build(job.strategy, {job.a}, 1); })
          == error{errc::invalid_argument,
                   "variables_to_average has 'b', which this job does not train: an average is "
                   "made of updates"});
  }

  TEST_CASE("variables are restored from their averages, or from themselves") {
    averaged_job job{1};
    exponential_moving_average average{0.75};
    const variable averaged[] = {job.b};
    auto names = average.variables_to_restore(job.strategy.variables(), averaged);
    CHECK(names.size() == 2);
    CHECK(names.at("a") == job.a);
    CHECK(names.at("b/ExponentialMovingAverage") == job.b);
    auto all = average.variables_to_restore(job.strategy.variables());
    CHECK(all.size() == 2);
    CHECK(all.at("a/ExponentialMovingAverage") == job.a);
  }
}

} // namespace exponential_moving_average_test
