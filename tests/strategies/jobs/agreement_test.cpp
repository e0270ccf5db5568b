// SPDX-License-Identifier: Apache-2.0
// Goal: a job computes the same numbers whatever runs it. Method: the numbers of TensorFlow's own
// tests, and a linear regression in both worlds against a plain loop, bit for bit.
#include "tests/strategies/small_job.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace agreement_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// ---- the numbers of TensorFlow's tests ----

/// The variables of TensorFlow's test of SyncReplicasOptimizer: a 0, a 1, and a table of two rows.
/// Only the second row gets gradients. Source:
/// tensorflow/python/training/sync_replicas_optimizer_test.py.
struct original {
  using numbers = std::array<double, 4>;

  explicit original(const sync_options& sync)
    : strategy(world, {.replicas = sync.total_num_replicas}),
      optimizer(rules::sgd{.learning_rate = 2}, sync) {}

  [[nodiscard]] task<void> step(replica_context& context) const {
    auto offset = 0.2F * static_cast<float>(context.replica_id_in_sync_group());
    auto computing = context.compute([](std::stop_token) { return 0; });
    co_await computing;
    tensor row{dtype::i64, {1}};
    row.mutable_values<int64_t>()[0] = 1;
    indexed_slices slices{row, make_tensor({1, 1}, {0.1F + offset}), {2, 1}};
    std::vector<gradient_and_variable> gradients{{make_tensor({}, {0.1F + offset}), zero},
                                                 {make_tensor({}, {0.9F + offset}), one},
                                                 {slices, table}};
    auto applying = optimizer.apply_gradients(context, gradients);
    co_await applying;
  }

  /// Trains; `paces[replica][iteration]` are the computing times.
  course run(uint64_t steps, const std::vector<std::vector<job_time>>& paces) {
    training_options options{.steps = steps};
    options.pace = [paces](uint32_t replica, uint64_t iteration, job_time) {
      return paces.at(replica).at(iteration);
    };
    options.evaluation
      = {1,
         [this](std::span<const tensor> values) {
           auto table_rows = values[2].values<float>();
           after_steps.push_back({values[0].values<float>()[0], values[1].values<float>()[0],
                                  table_rows[0], table_rows[1]});
           return 0.0;
         },
         [](uint64_t, double) {}};
    return play(
      strategy, optimizer, [this](replica_context& context) { return step(context); }, options);
  }

  troupe::world world = world::virtual_time();
  parameter_server_strategy strategy;
  sync_replicas_optimizer optimizer;
  variable zero = strategy.make_variable("v0", make_tensor({}, {0}));
  variable one = strategy.make_variable("v1", make_tensor({}, {1}));
  variable table = strategy.make_variable("v_sparse", make_tensor({2, 1}, {3, 4}));
  std::vector<numbers> after_steps; ///< The variables after each step.
};

void check_close(const original::numbers& seen, const original::numbers& expected) {
  for (size_t i = 0; i < seen.size(); ++i)
    CHECK(seen[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

// ---- a linear regression ----

constexpr int64_t features = 7;
constexpr int batch = 5;
constexpr uint32_t replicas = 4;
constexpr uint64_t seed = 5;

template <class T>
struct point {
  std::vector<T> weights;
  T bias = 0;
};

/// The gradient of half the mean squared error of a random batch.
template <class T>
point<T> descent(std::span<const T> weights, T bias, random_key key) {
  random_stream draw{key};
  point<T> gradient{std::vector<T>(features), 0};
  for (int example = 0; example < batch; ++example) {
    std::vector<T> x(features);
    for (auto& value : x)
      value = static_cast<T>(draw.normal());
    T target = 3 * x[0] - x[1] + static_cast<T>(0.1 * draw.normal());
    T difference = std::inner_product(x.begin(), x.end(), weights.begin(), bias) - target;
    for (size_t i = 0; i < x.size(); ++i)
      gradient.weights[i] += difference * x[i] / batch;
    gradient.bias += difference / batch;
  }
  return gradient;
}

/// The means of the replicas' gradients, in their order, then the rule: one thread, no messages.
template <class T, class Rule>
class plain_loop {
public:
  explicit plain_loop(const Rule& rule) : rule_(rule), slots_(features + 1) {}

  void step(uint64_t number) {
    if constexpr (std::is_same_v<Rule, rules::adam>) rule_.step = number + 1;
    std::vector<point<T>> gradients;
    for (uint32_t replica = 0; replica < replicas; ++replica)
      gradients.push_back(descent<T>(now.weights, now.bias, {seed, "batch", replica, number}));
    for (size_t i = 0; i < now.weights.size(); ++i)
      update(now.weights[i], slots_[i],
             mean(gradients, [i](const point<T>& one) { return one.weights[i]; }));
    update(now.bias, slots_.back(), mean(gradients, [](const point<T>& one) { return one.bias; }));
  }

  point<T> now{std::vector<T>(features), 0};

private:
  template <class Part>
  T mean(const std::vector<point<T>>& gradients, Part part) {
    T sum = part(gradients[0]);
    for (size_t i = 1; i < gradients.size(); ++i)
      sum += part(gradients[i]);
    return sum / static_cast<T>(gradients.size());
  }

  void update(T& value, std::array<T, Rule::slot_names.size()>& slots, T gradient) {
    value = typename Rule::template for_elements<T>{rule_}(value, gradient, slots);
  }

  Rule rule_;
  std::vector<std::array<T, Rule::slot_names.size()>> slots_;
};

/// One step of the regression on one replica. Batches are drawn from the context, so from the
/// world's seed.
template <class T>
task<void> regress(replica_context& context, sync_replicas_optimizer optimizer, variable weights,
                   variable bias) {
  auto reading = context.read({weights, bias});
  std::vector<tensor> values = co_await reading;
  auto computing = context.compute([values, key = context.random("batch")](std::stop_token) {
    return descent<T>(values[0].values<T>(), values[1].values<T>()[0], key);
  });
  auto found = co_await computing;
  tensor by_weights{dtype_of<T>, {features}};
  std::ranges::copy(found.weights, by_weights.mutable_values<T>().begin());
  tensor by_bias{dtype_of<T>, {}};
  by_bias.mutable_values<T>()[0] = found.bias;
  std::vector<gradient_and_variable> gradients{{by_weights, weights}, {by_bias, bias}};
  auto applying = optimizer.apply_gradients(context, gradients);
  co_await applying;
}

/// A regression's variables and ledger.
template <class T>
struct fit {
  point<T> found;
  std::string ledger;
};

template <class T>
fit<T> train_regression(world world, const update_rule& rule, const sync_options& sync,
                        training_options options) {
  parameter_server_strategy strategy{world, {.replicas = sync.total_num_replicas}};
  auto weights = strategy.make_variable("weights", zeros({features}, dtype_of<T>));
  auto bias = strategy.make_variable("bias", zeros({}, dtype_of<T>));
  sync_replicas_optimizer optimizer{rule, sync};
  auto step
    = [=](replica_context& context) { return regress<T>(context, optimizer, weights, bias); };
  auto seen = play(strategy, optimizer, step, std::move(options));
  CHECK_FALSE(seen.report.failure);
  CHECK(seen.report.lost.empty());
  auto found = strategy.read(weights).template values<T>();
  return {{{found.begin(), found.end()}, strategy.read(bias).template values<T>()[0]},
          print(seen.steps)};
}

template <class T>
void check_same(const point<T>& left, const point<T>& right) {
  CHECK(left.weights == right.weights);
  CHECK(left.bias == right.bias);
}

/// Replicas of different speeds, in an order that changes from step to step.
job_time uneven(uint32_t replica, uint64_t iteration, job_time) {
  random_stream draw{random_key{11, "pace", replica, iteration}};
  return job_time{static_cast<int64_t>(draw.below(5)) + 1};
}

template <class T, class Rule>
void check_against_plain_loop(const Rule& rule) {
  constexpr uint64_t steps = 25;
  plain_loop<T, Rule> plain{rule};
  for (uint64_t step = 0; step < steps; ++step)
    plain.step(step);
  CHECK(std::abs(plain.now.weights[0]) > 0.1); // it has learnt something
  for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
    const sync_options sync{replicas, replicas, policy};
    check_same(plain.now, train_regression<T>(world::virtual_time({.seed = seed}), rule, sync,
                                              {.steps = steps, .pace = uneven})
                            .found);
    check_same(plain.now, train_regression<T>(world::threads({.seed = seed, .threads = 2}), rule,
                                              sync, {.steps = steps})
                            .found);
  }
}

} // namespace

TEST_SUITE("strategies/jobs/agreement") {
  TEST_CASE("two workers compute what TensorFlow's test expects") {
    original job{{.replicas_to_aggregate = 2, .total_num_replicas = 2}};
    auto seen = job.run(2, {{1s, 1s, 1s}, {1s, 1s, 1s}});
    REQUIRE(job.after_steps.size() == 2);
    check_close(job.after_steps[0], {-0.4, -1.0, 3.0, 3.6});
    check_close(job.after_steps[1], {-0.8, -3.0, 3.0, 3.2});
    // Between them a round was wasted: both gradients were a step behind.
    CHECK(seen.seconds() == std::vector<double>{1, 2});
    CHECK(seen.steps[1].stale.size() == 2);
    CHECK(seen.steps[1].stale[0].local_step == 0);
    CHECK(seen.steps[1].accepted[0].local_step == 1);
  }

  TEST_CASE("three workers with a backup compute what TensorFlow's test expects") {
    original job{{2, 3, sync_policy::tensorflow, 3}};
    // Workers 0 and 2 are first, then 0 and 1; worker 1 is late for the first step.
    auto seen = job.run(2, {{1s, 1s, 1s}, {1500ms, 500ms, 1s}, {1s, 1s, 2s}});
    REQUIRE(job.after_steps.size() == 2);
    check_close(job.after_steps[0], {-0.6, -1.2, 3.0, 3.4});
    check_close(job.after_steps[1], {-1.0, -3.2, 3.0, 3.0});
    CHECK(replicas_of(seen.steps[0].accepted) == replica_list{0, 2});
    CHECK(replicas_of(seen.steps[1].accepted) == replica_list{0, 1});
    CHECK(replicas_of(seen.steps[1].stale) == replica_list{1, 0, 1, 2});
  }

  TEST_CASE_TEMPLATE("both worlds and a plain loop agree bit for bit", T, float, double) {
    check_against_plain_loop<T>(rules::sgd{.learning_rate = 0.1});
    check_against_plain_loop<T>(rules::momentum{.learning_rate = 0.05});
    check_against_plain_loop<T>(rules::adam{.learning_rate = 0.05});
  }

  TEST_CASE("a job learns what there is to learn") {
    auto fit = train_regression<double>(world::virtual_time({.seed = seed}),
                                        rules::momentum{.learning_rate = 0.05},
                                        {3, 4, sync_policy::latest_token}, {.steps = 300});
    CHECK(fit.found.weights[0] == doctest::Approx(3).epsilon(0.05));
    CHECK(fit.found.weights[1] == doctest::Approx(-1).epsilon(0.05));
    CHECK(fit.found.bias == doctest::Approx(0).epsilon(0.05));
  }

  TEST_CASE("the same seed gives the same variables and the same ledger, bit for bit") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto run = [&] {
        return train_regression<float>(world::virtual_time({.seed = seed}), rules::adam{},
                                       {3, 5, policy}, {.steps = 40, .pace = uneven});
      };
      auto first = run();
      auto second = run();
      check_same(first.found, second.found);
      CHECK(first.ledger == second.ledger);
    }
  }

  TEST_CASE("interleavings differ from seed to seed, but not the sums of a full step") {
    // The gradients do not depend on the world's seed here, nor does the pace.
    auto run = [](uint64_t world_seed) {
      small_job job{{6, 6, sync_policy::latest_token}, world_seed, 1};
      std::vector<uint32_t> order;
      auto step = [&](replica_context& context) -> task<void> {
        order.push_back(context.replica_id_in_sync_group());
        random_stream draw{
          random_key{1, "gradient", context.replica_id_in_sync_group(), context.iteration()}};
        tensor gradient{dtype::f64, {1}};
        gradient.mutable_values<double>()[0] = draw.normal();
        auto giving = give(context, job.optimizer, job.weights, gradient);
        co_await giving;
      };
      static_cast<void>(job.run(step, {.steps = 20, .pace = one_second}));
      return std::pair{order, job.values()};
    };
    auto [first_order, first_values] = run(1);
    auto [second_order, second_values] = run(2);
    CHECK(first_order != second_order);
    CHECK(first_values == second_values);
  }

  TEST_CASE("a threads world gives the same variables again and again where all are needed") {
    auto run = [] {
      return train_regression<float>(world::threads({.seed = seed, .threads = 2}), rules::adam{},
                                     {4, 4, sync_policy::latest_token}, {.steps = 40});
    };
    check_same(run().found, run().found);
  }
}

} // namespace agreement_test
