// SPDX-License-Identifier: Apache-2.0
// Goal: users of TensorFlow's SyncReplicasOptimizer find it here, call by call and number by
// number. Method: the sentences of its documentation, and the two scenarios of its unit tests.
#include "kernels/math/cast.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/jobs/hooks.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/small_job.hpp"

#include <cmath>

namespace sync_replicas_optimizer_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Remembers the variables after every step.
class watching_hook final : public session_hook {
public:
  void begin(session_plan& plan) override { plan.takes_snapshots = true; }

  bool wants_snapshot(uint64_t, job_time, bool) override { return true; }

  void after_snapshot(const job_snapshot& snapshot) override { snapshots.push_back(snapshot); }

  /// The last element of a variable after the step.
  [[nodiscard]] double value(size_t step, size_t variable) const {
    auto values = snapshots.at(step - 1).variables.at(variable).state.value;
    return values.values<double>().back();
  }

  std::vector<job_snapshot> snapshots;
};

/// TensorFlow's unit test: worker i gives .1 + .2 i for v0 and one row of a table, .9 + .2 i for
/// v1.
struct unit_test_job {
  explicit unit_test_job(uint32_t workers, int64_t init_tokens)
    : strategy(world, {.replicas = workers}),
      optimizer(rules::sgd{.learning_rate = 2}, {.replicas_to_aggregate = 2,
                                                 .total_num_replicas = workers,
                                                 .initial_tokens = init_tokens}) {}

  course run(uint64_t steps, std::vector<std::vector<double>> seconds) {
    auto step = [v0 = v0, v1 = v1, table = table,
                 optimizer = optimizer](replica_context& context) -> task<void> {
      auto id = context.replica_id_in_sync_group();
      auto computing = context.compute([](std::stop_token) { return true; });
      co_await computing;
      indexed_slices row{tensor{dtype::i64, {1}}, scalar(0.1 + 0.2 * id).reshape({1, 1}), {2, 1}};
      row.indices.mutable_values<int64_t>()[0] = 1;
      std::vector<gradient_and_variable> gradients{
        {scalar(0.1 + 0.2 * id), v0}, {scalar(0.9 + 0.2 * id), v1}, {row, table}};
      auto applying = optimizer.apply_gradients(context, gradients);
      co_await applying;
    };
    training_options options;
    options.steps = steps;
    options.hooks = {watch};
    options.pace = [seconds](uint32_t replica, uint64_t iteration, job_time) {
      const auto& own = seconds[replica];
      return job_time{static_cast<int64_t>(1e9 * own[std::min<size_t>(iteration, own.size() - 1)])};
    };
    return play(strategy, optimizer, step, options);
  }

  static tensor scalar(double value) {
    tensor result{dtype::f64, {1}};
    result.mutable_values<double>()[0] = value;
    return result;
  }

  static tensor column(double first, double second) {
    tensor result{dtype::f64, {2, 1}};
    result.mutable_values<double>()[0] = first;
    result.mutable_values<double>()[1] = second;
    return result;
  }

  troupe::world world = world::virtual_time();
  parameter_server_strategy strategy;
  variable v0 = strategy.make_variable("v0", scalar(0));
  variable v1 = strategy.make_variable("v1", scalar(1));
  variable table = strategy.make_variable("table", column(3, 4));
  sync_replicas_optimizer optimizer;
  std::shared_ptr<watching_hook> watch = std::make_shared<watching_hook>();
};

/// An optimizer before and after its job is built.
struct unbuilt {
  troupe::world world = world::virtual_time();
  parameter_server_strategy strategy{world, {.replicas = 2}};
  variable weights = strategy.make_variable("weights", zeros({2}));
  sync_replicas_optimizer optimizer{rules::adam{},
                                    {.replicas_to_aggregate = 3, .total_num_replicas = 2}};

  void build() { optimizer.build(strategy, {weights}, 0); }

  ~unbuilt() {
    if (refusal_of([&] { static_cast<void>(optimizer.actors()); }).code == errc::none)
      optimizer.actors()->end();
  }
};

} // namespace

TEST_SUITE("strategies/optimizers/sync_replicas_optimizer") {
  TEST_CASE("two workers of two: the published numbers, and one wasted round at the start") {
    unit_test_job job{2, 2};
    auto seen = job.run(2, {{1}, {1}});
    CHECK(job.watch->value(1, 0) == doctest::Approx(-0.4));
    CHECK(job.watch->value(1, 1) == doctest::Approx(-1.0));
    CHECK(job.watch->value(1, 2) == doctest::Approx(3.6));
    CHECK(job.watch->value(2, 0) == doctest::Approx(-0.8));
    CHECK(job.watch->value(2, 1) == doctest::Approx(-3.0));
    REQUIRE(seen.steps.size() == 2);
    CHECK(seen.steps[1].stale.size() == 2); // the second round was for step 0 ...
    for (const auto& dropped : seen.steps[1].stale)
      CHECK(dropped.local_step == 0);
    for (const auto& taken : seen.steps[1].accepted)
      CHECK(taken.local_step == 1); // ... and gave tokens of step 1
  }

  TEST_CASE("two workers of three: the late one is dropped, and the published numbers come out") {
    unit_test_job job{3, 3};
    auto seen = job.run(2, {{1, 1, 1}, {1.5, 1, 1}, {1, 1, 5}});
    CHECK(job.watch->value(1, 0) == doctest::Approx(-0.6));
    CHECK(job.watch->value(1, 1) == doctest::Approx(-1.2));
    CHECK(job.watch->value(2, 0) == doctest::Approx(-1.0));
    CHECK(job.watch->value(2, 1) == doctest::Approx(-3.2));
    REQUIRE(seen.steps.size() == 2);
    CHECK(replicas_of(seen.steps[0].accepted) == replica_list{0, 2});
    CHECK(seen.steps[1].stale.size() == 4); // worker 1, then a whole round
    CHECK(seen.steps[1].stale[0].replica == 1);
    CHECK(replicas_of(seen.steps[1].accepted) == replica_list{0, 1});
  }

  TEST_CASE("total_num_replicas is replicas_to_aggregate unless given, and tokens are the larger") {
    CHECK(sync_options{.replicas_to_aggregate = 5}.total_num_replicas == 5);
    sync_options backups{.replicas_to_aggregate = 3, .total_num_replicas = 4};
    CHECK(backups.tokens_per_step() == 4);
    sync_options several{.replicas_to_aggregate = 4, .total_num_replicas = 3};
    CHECK(several.tokens_per_step() == 4);
  }

  TEST_CASE("the name is the one given, sync_replicas if none") {
    CHECK(sync_replicas_optimizer{rules::sgd{}, {}}.get_name() == "sync_replicas");
    CHECK(sync_replicas_optimizer{rules::sgd{}, {.name = "mine"}}.get_name() == "mine");
  }

  TEST_CASE_FIXTURE(unbuilt, "a job without variables is refused") {
    auto reason = refusal_of([&] { optimizer.build(strategy, {}, 0); });
    CHECK(reason.code == errc::invalid_argument);
    CHECK(reason.message.find("Must supply at least one variable") == 0);
  }

  TEST_CASE_FIXTURE(unbuilt, "a job of variables that cannot be trained together is refused") {
    parameter_server_strategy other{world, {.replicas = 2}};
    auto theirs = other.make_variable("theirs", zeros({2}));
    CHECK(refusal_of([&] {
            optimizer.build(strategy, {weights, theirs}, 0);
          }).message
          == "variable 'theirs' is of another strategy; train those of this one");
    CHECK(refusal_of([&] {
            optimizer.build(strategy, {weights, weights}, 0);
          }).message
          == "variable 'weights' is listed twice in variables");
    auto counter = strategy.make_variable("counter", zeros({2}, dtype::i64));
    CHECK(refusal_of([&] {
            optimizer.build(strategy, {weights, counter}, 0);
          }).message
          == "variable 'counter' is i64; an optimizer updates f32 and f64 only");
  }

  TEST_CASE_FIXTURE(unbuilt, "a job without a global step is refused") {
    auto reason = refusal_of([&] { optimizer.build(strategy, {weights}, std::nullopt); });
    CHECK(reason.code == errc::invalid_argument);
    CHECK(reason.message.find("Global step is required") == 0);
  }

  TEST_CASE_FIXTURE(unbuilt, "tokens, runner and the hook's beginning need a built job") {
    session_plan plan{.world = world};
    auto hook = optimizer.make_session_run_hook(true); // may be made before
    CHECK(refusal_of([&] { static_cast<void>(optimizer.get_init_tokens()); }).code
          == errc::failed_precondition);
    CHECK(refusal_of([&] { static_cast<void>(optimizer.get_chief_queue_runner()); }).code
          == errc::failed_precondition);
    auto reason = refusal_of([&] { hook->begin(plan); });
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.find("apply_gradients should be called before") != std::string::npos);
    build();
    hook->begin(plan);
    CHECK(plan.init_tokens == 3);
    CHECK(optimizer.get_chief_queue_runner().collected.size() == 1);
  }

  TEST_CASE_FIXTURE(unbuilt, "initial tokens: -1 is N, fewer than N - n are refused") {
    build();
    CHECK(optimizer.get_init_tokens() == 3);
    CHECK(optimizer.get_init_tokens(1) == 1);
    auto reason = refusal_of([&] { static_cast<void>(optimizer.get_init_tokens(0)); });
    CHECK(reason.code == errc::invalid_argument);
    CHECK(reason.message == "Too few tokens to finish the first step: 0 (given) vs 1 (needed)");
  }

  TEST_CASE("no initial tokens are legal with as many replicas as gradients, and waste no round") {
    small_job job{{.replicas_to_aggregate = 2}};
    training_options options{.steps = 3, .pace = one_second};
    options.hooks = {job.optimizer.make_session_run_hook(true, 0)};
    auto seen = job.run_idle(options);
    CHECK(seen.seconds() == std::vector<double>{1, 1, 1});
    CHECK(seen.stale_count() == 0);
  }

  TEST_CASE("a hook that is not the chief's would leave steps open, and is refused") {
    small_job job{{.replicas_to_aggregate = 2}};
    training_options options{.steps = 3};
    options.hooks = {job.optimizer.make_session_run_hook(false)};
    auto reason = refusal_of([&] { static_cast<void>(job.run_idle(options)); });
    CHECK(reason.code == errc::failed_precondition);
    CHECK(reason.message.find("is_chief") != std::string::npos);
  }

  TEST_CASE_FIXTURE(unbuilt, "slots are found by name, and no token or local step among them") {
    build();
    CHECK(optimizer.get_slot_names() == std::vector<std::string>{"m", "v"});
    auto mean = optimizer.get_slot(strategy, weights, "m");
    REQUIRE(mean);
    CHECK(mean->extents() == weights.extents());
    CHECK_FALSE(optimizer.get_slot(strategy, weights, "momentum"));
    auto all = optimizer.variables(strategy);
    REQUIRE(all.size() == 2);
    CHECK(all.begin()->first == "weights/m");
  }

  TEST_CASE("a fast replica gives a second gradient or not, as one_gradient_per_replica says") {
    for (bool only_one : {false, true}) {
      small_job job{{.replicas_to_aggregate = 2, .one_gradient_per_replica = only_one}};
      training_options options{.steps = 1};
      options.pace = [](uint32_t replica, uint64_t, job_time) -> job_time {
        return replica == 0 ? 1s : 2500ms;
      };
      auto seen = job.run_idle(options);
      REQUIRE(seen.steps.size() == 1);
      CHECK(replicas_of(seen.steps[0].accepted)
            == (only_one ? replica_list{0, 1} : replica_list{0, 0}));
      CHECK(seen.steps[0].stale.empty());
    }
    sync_options impossible{
      .replicas_to_aggregate = 3, .total_num_replicas = 2, .one_gradient_per_replica = true};
    CHECK(impossible.validate().error().code == errc::invalid_argument);
  }

  TEST_CASE("a clip by the norm of all mean gradients scales them together, or not at all") {
    auto train_with = [](double norm_max) {
      auto world = world::virtual_time();
      parameter_server_strategy strategy{world, {.replicas = 2}};
      auto a = strategy.make_variable("a", zeros({1}));
      auto b = strategy.make_variable("b", zeros({2}));
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1},
                                        {.replicas_to_aggregate = 2,
                                         .policy = sync_policy::latest_token,
                                         .clip_global_norm = norm_max}};
      auto step = [=](replica_context& context) -> task<void> {
        auto sign = context.replica_id_in_sync_group() == 0 ? 1.F : -1.F; // cancels in the mean
        std::vector<gradient_and_variable> gradients{{make_tensor({1}, {3 + 2 * sign}), a},
                                                     {make_tensor({2}, {4, sign}), b}};
        auto applying = optimizer.apply_gradients(context, gradients);
        co_await applying;
      };
      CHECK_FALSE(train(strategy, optimizer, step_function{step}, {.steps = 1}).failure);
      auto first = strategy.read(a);
      auto second = strategy.read(b);
      return std::vector<float>{first.values<float>()[0], second.values<float>()[0],
                                second.values<float>()[1]};
    };
    CHECK(train_with(0) == std::vector<float>{-3, -4, 0});
    CHECK(train_with(5) == std::vector<float>{-3, -4, 0}); // the norm is 5
    auto clipped = train_with(1);
    CHECK(clipped[0] == doctest::Approx(-0.6));
    CHECK(clipped[1] == doctest::Approx(-0.8));
    CHECK(clipped[2] == 0);
    CHECK(sync_options{.clip_global_norm = -1}.validate().error().code == errc::invalid_argument);
  }

  TEST_CASE("minimize is compute_gradients and apply_gradients, and reports the loss") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    auto weights = strategy.make_variable("weights", make_tensor({2}, {3, -1}));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.5},
                                      {2, 2, sync_policy::latest_token}};
    auto step = [=](replica_context& context) -> task<void> {
      loss_function square = [](tape& t, std::span<const expression> variables) {
        return t.mean(t.multiply(variables[0], variables[0]));
      };
      auto minimizing = optimizer.minimize(context, square, {weights}, 7);
      auto outcome = co_await minimizing;
      CHECK(outcome.accepted == 1);
    };
    auto seen = play(strategy, optimizer, step, {.steps = 1});
    REQUIRE(seen.steps.size() == 1);
    CHECK(seen.steps[0].accepted[0].loss == 5); // (9 + 1) / 2
    CHECK(seen.steps[0].accepted[0].examples == 7);
    auto values = strategy.read(weights); // w -= 0.5 * (2 w / 2)
    CHECK(values.values<float>()[0] == 1.5F);
    CHECK(values.values<float>()[1] == -0.5F);
  }

  TEST_CASE("a loss brings the precision of its products along") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 1}};
    const auto value = make_tensor({1, 1}, {1 + 0x1p-9F});
    auto weights = strategy.make_variable("weights", value);
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0},
                                      {1, 1, sync_policy::latest_token}};
    auto step = [=](replica_context& context) -> task<void> {
      auto given = [=](tape& t, std::span<const expression> variables) {
        return t.mean(t.matmul(variables[0], t.constant(value)));
      };
      loss_function full = given, rounded{given, product_precision::bf16};
      auto computing = optimizer.compute_gradients(context, full, {weights});
      auto exact = co_await computing;
      CHECK(exact.loss == (1 + 0x1p-9F) * (1 + 0x1p-9F));
      auto minimizing = optimizer.minimize(context, rounded, {weights}, 1);
      co_await minimizing;
    };
    auto seen = play(strategy, optimizer, step, {.steps = 1});
    REQUIRE(seen.steps.size() == 1);
    CHECK(seen.steps[0].accepted[0].loss == 1);
  }

  TEST_CASE("where losses are sums, a replica with fewer examples weighs less") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    auto weights = strategy.make_variable("weights", make_tensor({1}, {0}));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1},
                                      {.replicas_to_aggregate = 2,
                                       .total_num_replicas = 2,
                                       .policy = sync_policy::latest_token,
                                       .losses_are_sums = true}};
    auto step = [=](replica_context& context) -> task<void> {
      // Replica 0 has three examples with a gradient of 1 each, replica 1 has one of 5.
      auto is_first = context.replica_id_in_sync_group() == 0;
      context.report(0.5, is_first ? 3 : 1);
      std::vector<gradient_and_variable> gradients{
        {make_tensor({1}, {is_first ? 3.F : 5.F}), weights}};
      auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
      auto outcome = co_await applying;
      CHECK(std::get<tensor>(outcome.aggregates.at(0).value()).values<float>()[0] == 2);
    };
    auto seen = play(strategy, optimizer, step, {.steps = 1});
    CHECK_FALSE(seen.report.failure);
    CHECK(strategy.read(weights).values<float>()[0] == -2); // (3 + 5) / 4, where means give 3
  }

  TEST_CASE("where losses are sums, minimize reports their mean, and examples must be given") {
    auto train_with = [](uint32_t examples) {
      auto world = world::virtual_time();
      parameter_server_strategy strategy{world};
      auto weights = strategy.make_variable("weights", make_tensor({1}, {3}));
      sync_replicas_optimizer optimizer{
        rules::sgd{.learning_rate = 0.25},
        {.policy = sync_policy::latest_token, .losses_are_sums = true}};
      auto step = [=](replica_context& context) -> task<void> {
        loss_function twice = [](tape& t, std::span<const expression> variables) {
          return t.scale(t.mean(variables[0]), 2); // of two examples
        };
        auto minimizing = optimizer.minimize(context, twice, {weights}, examples);
        co_await minimizing;
      };
      auto seen = play(strategy, optimizer, step, {.steps = 1});
      if (!seen.report.failure) {
        CHECK(seen.steps.at(0).accepted.at(0).loss == 3);
        CHECK(strategy.read(weights).values<float>()[0] == 2.75F);
      }
      return seen.report.failure ? seen.report.failure->message : std::string{};
    };
    CHECK(train_with(2).empty());
    CHECK(train_with(0).find("replica 0 reports none; call context.report(loss, examples)")
          != std::string::npos);
  }

  TEST_CASE("minimize without variables takes all trainable ones, and scales by grad_loss") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world};
    auto weights = strategy.make_variable("weights", make_tensor({1}, {3}));
    strategy.make_variable("counter", make_tensor({1}, {9}), {.trainable = false});
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.25},
                                      {1, 1, sync_policy::latest_token}};
    auto step = [=](replica_context& context) -> task<void> {
      loss_function square = [](tape& t, std::span<const expression> variables) {
        CHECK(variables.size() == 1);
        return t.mean(t.multiply(variables[0], variables[0]));
      };
      auto plain = optimizer.minimize(context, square, 7);
      co_await plain; // 3 - 0.25 * 6
      auto scaled = optimizer.minimize(context, square, {weights}, 7, 2);
      co_await scaled; // 1.5 - 0.25 * 2 * 3
    };
    auto seen = play(strategy, optimizer, step, {.steps = 2, .variables = {weights}});
    REQUIRE(seen.steps.size() == 2);
    CHECK(seen.steps[1].accepted[0].loss == 2.25); // without grad_loss
    CHECK(strategy.read(weights).values<float>()[0] == 0);
  }

  TEST_CASE("negative numbers of replicas are refused by their names") {
    int32_t negative = -1;
    auto count = static_cast<uint32_t>(negative);
    auto line_of = [](sync_options options) { return options.validate().error().message; };
    CHECK(line_of({.replicas_to_aggregate = count})
          == "replicas_to_aggregate is -1; give 1 or more");
    CHECK(line_of({.replicas_to_aggregate = 1, .total_num_replicas = count})
          == "total_num_replicas is -1; give 1 or more");
    auto world = world::virtual_time();
    CHECK(refusal_of([&] {
            parameter_server_strategy none{world, {.replicas = count}};
          }).message
          == "replicas is -1; a parameter_server strategy needs at least 1");
    CHECK(refusal_of([&] { static_cast<void>(stop_at_step_hook::at(uint64_t(-5))); }).message
          == "stop_at_step_hook: last_step is -5; training needs at least 1");
    CHECK(refusal_of([] { static_cast<void>(stop_at_step_hook::at(0)); }).message
          == "stop_at_step_hook: last_step is 0; training needs at least 1");
    CHECK(refusal_of([] { static_cast<void>(stop_at_step_hook::after(0)); }).message
          == "stop_at_step_hook: num_steps is 0; training needs at least 1");
  }

  TEST_CASE("gradients of a narrower dtype are added in that of their variable") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 3}};
    auto weights = strategy.make_variable("w", zeros({1}));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 3}, {.replicas_to_aggregate = 3}};
    auto step = [=](replica_context& context) -> task<void> {
      auto computing = context.compute([](std::stop_token) { return true; });
      co_await computing;
      auto own = context.replica_id_in_sync_group() == 0 ? 2048.0 : 1.0; // f16 has no 2049
      auto applying
        = optimizer.apply_gradients(context, cast(array({1}, {own}), dtype::f16), weights);
      co_await applying;
    };
    training_options options{.steps = 1};
    options.pace = [](uint32_t, uint64_t, job_time) -> job_time { return 1s; };
    auto report = train(strategy, optimizer, step, options);
    CHECK_FALSE(report.failure);
    CHECK(numbers_of(strategy.read(weights))[0] == doctest::Approx(-2050));
  }

  TEST_CASE("rows may have i32 numbers, and not say of what array they are") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    auto table = strategy.make_variable("table", zeros({4, 1}));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {.replicas_to_aggregate = 2}};
    auto step = [=](replica_context& context) -> task<void> {
      auto id = context.replica_id_in_sync_group();
      auto computing = context.compute([](std::stop_token) { return true; });
      co_await computing;
      indexed_slices terse{array({1}, {1.0 + id}, dtype::i32), array({1, 1}, {3}), {}};
      auto applying = optimizer.apply_gradients(context, terse, table);
      co_await applying;
    };
    training_options options{.steps = 1};
    options.pace = [](uint32_t, uint64_t, job_time) -> job_time { return 1s; };
    auto report = train(strategy, optimizer, step, options);
    CHECK_FALSE(report.failure);
    CHECK(numbers_of(strategy.read(table)) == numbers{0, -3, -3, 0});
  }

  TEST_CASE(
    "a replica that asks gets the step's mean gradient, a late one nothing, and none hangs") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 3}};
    auto weights = strategy.make_variable("weights", zeros({1}));
    sync_replicas_optimizer optimizer{
      rules::sgd{},
      {.replicas_to_aggregate = 2, .total_num_replicas = 3, .policy = sync_policy::latest_token}};
    std::vector<std::vector<double>> seen(3);
    auto step = [=, &seen](replica_context& context) -> task<void> {
      auto id = context.replica_id_in_sync_group();
      auto computing = context.compute(
        [id](std::stop_token) { return make_tensor({1}, {static_cast<float>(2 * id)}); });
      auto gradient = co_await computing;
      std::vector<gradient_and_variable> gradients{{gradient, weights}};
      auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
      auto outcome = co_await applying;
      const auto& mean = outcome.aggregates.at(0);
      seen[id].push_back(mean ? std::get<tensor>(*mean).values<float>()[0] : NAN);
    };
    training_options options{.steps = 3};
    options.pace
      = [](uint32_t replica, uint64_t, job_time) -> job_time { return replica == 2 ? 1500ms : 1s; };
    auto report = train(strategy, optimizer, step, options);
    CHECK_FALSE(report.failure);
    REQUIRE(seen[0].size() == 2); // the third step's token never comes: the job is over
    CHECK(seen[0][0] == 1);       // mean of 0 and 2
    REQUIRE_FALSE(seen[2].empty());
    CHECK(std::isnan(seen[2][0]));
  }

  TEST_CASE("a replica that asks for means takes no token that a slow one needs") {
    auto asking = [](const small_job& job) {
      return
        [optimizer = job.optimizer, weights = job.weights](replica_context& context) -> task<void> {
          std::vector<gradient_and_variable> gradients{{array({1}, {1}, dtype::f64), weights}};
          auto computing = context.compute([](std::stop_token) { return true; });
          co_await computing;
          auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
          co_await applying;
        };
    };
    small_job two{{.replicas_to_aggregate = 2, .total_num_replicas = 2}};
    training_options options{.steps = 5};
    options.pace
      = [](uint32_t replica, uint64_t, job_time) -> job_time { return replica == 1 ? 2500ms : 1s; };
    CHECK_FALSE(two.run(asking(two), options).report.failure);
    CHECK(two.values() == std::vector<double>{-5});

    small_job alone{{.replicas_to_aggregate = 2, .total_num_replicas = 3}};
    options.dead_replicas = {1, 2};
    auto stalled = alone.run(asking(alone), options).report;
    REQUIRE(stalled.failure);
    CHECK(stalled.failure->code == errc::stalled);
  }

  TEST_CASE("the mean of a step that needs another gradient of the asker is refused") {
    small_job job{{.replicas_to_aggregate = 2, .total_num_replicas = 1}};
    auto step
      = [optimizer = job.optimizer, weights = job.weights](replica_context& context) -> task<void> {
      std::vector<gradient_and_variable> gradients{{zeros({1}, dtype::f64), weights}};
      auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
      co_await applying;
    };
    auto report = job.run(step, {.steps = 3}).report;
    REQUIRE(report.failure);
    CHECK(report.failure->message.find("read_aggregates would wait for itself")
          != std::string::npos);
  }
}

TEST_SUITE("strategies/jobs/hooks") {
  TEST_CASE("hooks are told of the beginning, of every step and of the end, in order") {
    class telling_hook final : public session_hook {
    public:
      void begin(session_plan& plan) override { add("begin", plan.steps); }

      void after_create_session(const session_control&) override { add("created", 0); }

      void after_step(const session_control&, const step_record& step) override {
        add("step", step.step);
      }

      void end(const job_report& report) override { add("end", report.step); }

      std::vector<std::string> lines;

    private:
      void add(const char* what, uint64_t number) {
        lines.push_back(fmt::format("{} {}", what, number));
      }
    };

    auto hook = std::make_shared<telling_hook>();
    small_job job{{.policy = sync_policy::latest_token}};
    training_options options{.steps = 2};
    options.hooks = {hook};
    static_cast<void>(job.run_idle(options));
    CHECK(hook->lines
          == std::vector<std::string>{"begin 2", "created 0", "step 1", "step 2", "end 2"});
  }

  TEST_CASE("a job stops at the step of a hook's choice, counted from its start or from all") {
    for (auto hook : {stop_at_step_hook::after(3), stop_at_step_hook::at(3)}) {
      small_job job{{.policy = sync_policy::latest_token}};
      training_options options{.steps = 100};
      options.hooks = {hook};
      CHECK(job.run_idle(options).report.step == 3);
      auto again = refusal_of([&] {
        options.hooks = {stop_at_step_hook::at(2)};
        static_cast<void>(job.run_idle(options));
      });
      CHECK(
        again
        == error{errc::invalid_argument, "the job is to stop at step 2, but has made 3 already"});
    }
  }

  TEST_CASE("a job that begins at the step to stop at ends well, without a step") {
    class ends final : public session_hook {
    public:
      void end(const job_report& report) override { steps.push_back(report.step); }

      std::vector<uint64_t> steps;
    };

    class stops_at_once final : public session_hook {
    public:
      void after_create_session(const session_control& session) override {
        session.request_stop("enough");
      }
    };

    small_job job{{.policy = sync_policy::latest_token}};
    auto told = std::make_shared<ends>();
    training_options options{.steps = 100, .hooks = {stop_at_step_hook::at(3), told}};
    static_cast<void>(job.run_idle(options));
    auto again = job.run_idle(options);
    CHECK(again.report.step == 3);
    CHECK_FALSE(again.report.failure);
    CHECK_FALSE(again.report.stopped);
    CHECK(again.steps.empty());
    CHECK(told->steps == std::vector<uint64_t>{3, 3});
    options.hooks = {stop_at_step_hook::at(3), std::make_shared<stops_at_once>()};
    CHECK(job.run_idle(options).report.step == 3);
    options.hooks = {stop_at_step_hook::at(5)};
    CHECK(job.run_idle(options).report.step == 5);
  }

  TEST_CASE("a loss that is no number ends the job, as a failure or not, naming the replica") {
    for (bool fails : {true, false}) {
      small_job job{{.replicas_to_aggregate = 2, .policy = sync_policy::latest_token}};
      auto step = [optimizer = job.optimizer,
                   weights = job.weights](replica_context& context) -> task<void> {
        auto is_lost = context.replica_id_in_sync_group() == 1 && context.iteration() == 4;
        context.report(is_lost ? NAN : 0.5, 8);
        auto applying = optimizer.apply_gradients(context, zeros({1}, dtype::f64), weights);
        co_await applying;
      };
      training_options options{.steps = 100, .pace = one_second};
      options.hooks = {std::make_shared<nan_stop_hook>(fails)};
      auto seen = job.run(step, options);
      CHECK(seen.report.step < 100);
      CHECK(seen.report.failure.has_value() == fails);
      auto line = fails ? seen.report.failure->message : seen.report.stopped.value();
      CHECK(line.find("the loss of replica 1 is nan at step 5") != std::string::npos);
    }
  }

  TEST_CASE("a loss that is no number is noticed without a number of examples, too") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 2}};
    static_cast<void>(strategy.make_variable("weights", make_tensor({2}, {NAN, 1})));
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.5},
                                      {2, 2, sync_policy::latest_token}};
    auto step = [=](replica_context& context) -> task<void> {
      loss_function mean
        = [](tape& t, std::span<const expression> variables) { return t.mean(variables[0]); };
      auto minimizing = optimizer.minimize(context, mean);
      co_await minimizing;
    };
    training_options options{.steps = 100};
    options.hooks = {std::make_shared<nan_stop_hook>(false)};
    auto stopped = play(strategy, optimizer, step, options).report.stopped;
    REQUIRE(stopped);
    CHECK(stopped->find("is inf at step 1;") != std::string::npos);
  }

  TEST_CASE("a hook that throws ends the job with what it threw") {
    class failing_hook final : public session_hook {
      void after_step(const session_control&, const step_record& step) override {
        if (step.step == 2) throw std::runtime_error{"no more paper"};
      }
    };

    small_job job{{.policy = sync_policy::latest_token}};
    training_options options{.steps = 1000, .pace = one_second};
    options.hooks = {std::make_shared<failing_hook>()};
    auto seen = job.run_idle(options);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->code == errc::user_code);
    CHECK(seen.report.failure->message == "no more paper");
    CHECK(seen.report.step < 1000);
  }

  TEST_CASE("logging says every so many steps where the job is, and how it ended") {
    std::vector<std::string> lines;
    small_job job{{.policy = sync_policy::latest_token}};
    training_options options{.steps = 4};
    options.hooks = {std::make_shared<logging_hook>(
      2, [&lines](const std::string& line) { lines.push_back(line); })};
    static_cast<void>(job.run_idle(options));
    CHECK(lines
          == std::vector<std::string>{"step 2: loss nan, 1 accepted, 0 stale",
                                      "step 4: loss nan, 1 accepted, 0 stale", "done at step 4"});
  }

  TEST_CASE("a summary leaves the curves of every so many steps in a file for TensorBoard") {
    auto bytes_after = [](uint64_t every_steps) {
      scratch_folder scratch;
      small_job job{{.policy = sync_policy::latest_token}};
      training_options options{.steps = 8, .pace = one_second};
      options.hooks = {std::make_shared<summary_saver_hook>(
        scratch.path(), every_steps,
        event_origin{std::chrono::system_clock::time_point{}, "here"})};
      CHECK_FALSE(job.run_idle(options).report.failure);
      return std::filesystem::file_size(scratch / "events.out.tfevents.0.here");
    };
    auto head = bytes_after(100);
    CHECK((bytes_after(1) - head) == 2 * (bytes_after(2) - head));
  }

  TEST_CASE("a profile shows the steps of its window only") {
    std::vector<uint64_t> shown;
    small_job job{{.policy = sync_policy::latest_token}};
    training_options options{.steps = 9};
    options.hooks = {std::make_shared<profile_window_hook>(
      3, 5, [&shown](const step_record& step) { shown.push_back(step.step); })};
    static_cast<void>(job.run_idle(options));
    CHECK(shown == std::vector<uint64_t>{3, 4, 5});
  }

  TEST_CASE("a session's loop is three lines, and a replica that leaves it early is named") {
    small_job job{
      {.replicas_to_aggregate = 1, .total_num_replicas = 2, .policy = sync_policy::latest_token}};
    session_function body = [optimizer = job.optimizer,
                             weights = job.weights](training_session& session) -> task<void> {
      step_function step = [=](replica_context& context) -> task<void> {
        auto giving = give(context, optimizer, weights, zeros(weights.extents(), weights.type()));
        co_await giving;
      };
      auto leaves_early = session.context().replica_id_in_sync_group() == 1;
      while (!session.should_stop()) {
        auto running = session.run(step);
        co_await running;
        if (leaves_early) co_return;
      }
    };
    auto report = train(job.strategy, job.optimizer, body, {.steps = 5, .pace = one_second});
    CHECK_FALSE(report.failure);
    CHECK(report.step == 5);
    REQUIRE(report.lost.size() == 1);
    CHECK(report.lost[0].replica == 1);
    CHECK(report.lost[0].reason.message == "its function returned before the job was over");
  }
}

} // namespace sync_replicas_optimizer_test
