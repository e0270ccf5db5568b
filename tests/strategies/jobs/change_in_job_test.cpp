// SPDX-License-Identifier: Apache-2.0
// Goal: in a step of `train`, where no replica waits for others, each process changes variables as
// one worker does. Method: the changes that replicas make in their first step, added up, for
// several splits of four replicas into processes.
#include "strategies/variables/metrics.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/small_cluster.hpp"
#include "tests/strategies/small_job.hpp"

#include <stdexcept>

namespace change_in_job_test {

using namespace troupe;
using namespace troupe::test;

namespace {

using mode = variable_aggregation;

/// Replicas that stand in several processes, as far as a caller asks; in truth all are here.
class several_processes final : public placement {
public:
  explicit several_processes(uint32_t replicas_each) : replicas_each_(replicas_each) {}

  uint32_t where(const std::string& name) const override {
    constexpr std::string_view role = "replica ";
    if (!name.starts_with(role)) return 0;
    return static_cast<uint32_t>(std::stoul(name.substr(role.size()))) / replicas_each_;
  }

  void place(const std::string& name, const caf::strong_actor_ptr& actor) override {
    actors_[name] = actor;
  }

  expected<caf::strong_actor_ptr> see(const std::string&, const std::string& name) override {
    return actors_[name];
  }

  expected<actor_search> search(const std::string&, const std::string&) override {
    return fail(errc::not_found, "nobody is looked for here");
  }

  void on_return(std::function<void(uint32_t)>) override {}

private:
  uint32_t replicas_each_;
  std::map<std::string, caf::strong_actor_ptr> actors_;
};

/// Four replicas in processes of so many, which do something in their first step.
struct four_replicas {
  explicit four_replicas(uint32_t in_each) : processes(in_each) {}

  variable make(mode aggregation, double value = 0) {
    return strategy.make_variable("v", scalar(value), {.aggregation = aggregation});
  }

  void train_once(const std::function<task<void>(replica_context&)>& first,
                  training_options options = {}) {
    options.steps = 3;
    options.variables = {weights};
    auto step = [=, weights = weights, optimizer = optimizer](replica_context& c) -> task<void> {
      if (c.iteration() == 0) {
        auto doing = first(c);
        co_await doing;
      }
      auto giving = give(c, optimizer, weights, zeros(weights.extents(), weights.type()));
      co_await giving;
    };
    auto seen = play(strategy, optimizer, step, options);
    CHECK_MESSAGE(!seen.report.failure, seen.report.failure.value_or(error{}).message);
    CHECK(seen.report.step == (trained += 3));
  }

  /// The value of a variable after each replica has added its number, from 1, to it.
  double added_up(mode aggregation) {
    auto target = make(aggregation);
    train_once([target](replica_context& context) -> task<void> {
      auto adding = context.assign_add(target, 1.0 + context.replica_id_in_sync_group());
      co_await adding;
    });
    return numbers_of(strategy.read(target))[0];
  }

  /// Why replica 0 is refused something, if it is.
  error refusal(const std::function<task<tensor>(replica_context&)>& call) {
    auto seen = std::make_shared<error>();
    train_once([=](replica_context& context) -> task<void> {
      auto calling = refusal_in(call(context));
      auto why = co_await calling;
      if (context.replica_id_in_sync_group() == 0) *seen = why;
    });
    return *seen;
  }

  troupe::world world = world::virtual_time({.seed = 3});
  uint64_t trained = 0; ///< Steps, in all jobs.
  several_processes processes;
  parameter_server_strategy strategy{world, {.replicas = 4, .placement = &processes}};
  variable weights = strategy.make_variable("w", zeros({1}, dtype::f64));
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {4, 4}};
};

} // namespace

TEST_SUITE("strategies/jobs/change_in_job") {
  TEST_CASE("under SUM, the changes of all replicas of all processes are made, one by one") {
    for (uint32_t in_each : {1, 2, 4})
      CHECK(four_replicas{in_each}.added_up(mode::sum) == 10);
  }

  TEST_CASE("under ONLY_FIRST_REPLICA, the first replica of each process makes its change") {
    CHECK(four_replicas{4}.added_up(mode::only_first_replica) == 1);
    CHECK(four_replicas{2}.added_up(mode::only_first_replica) == 4);
    CHECK(four_replicas{1}.added_up(mode::only_first_replica) == 10);
  }

  TEST_CASE("a replica that is alone in its process makes every change, whatever the aggregation") {
    for (auto aggregation : {mode::none, mode::mean})
      CHECK(four_replicas{1}.added_up(aggregation) == 10);
    four_replicas apart{1};
    auto target = apart.make(mode::sum);
    apart.train_once([target](replica_context& context) -> task<void> {
      auto assigning = context.assign(target, 7);
      auto value = co_await assigning;
      CHECK(numbers_of(value) == numbers{7});
    });
    CHECK(numbers_of(apart.strategy.read(target)) == numbers{7});
  }

  TEST_CASE("without a placement, all replicas stand in one process") {
    small_job job{{2, 2}};
    auto make = [&](const char* name, mode aggregation) {
      return job.strategy.make_variable(name, scalar(0), {.aggregation = aggregation});
    };
    auto sum = make("s", mode::sum), first = make("f", mode::only_first_replica);
    auto step = [=, optimizer = job.optimizer,
                 weights = job.weights](replica_context& context) -> task<void> {
      for (const auto& target : {sum, first}) {
        auto adding = context.assign_add(target, context.iteration() == 0 ? 1.0 : 0.0);
        co_await adding;
      }
      auto giving = give(context, optimizer, weights, zeros({1}, dtype::f64));
      co_await giving;
    };
    CHECK(!job.run(step, {.steps = 2, .variables = {job.weights}}).report.failure);
    CHECK(numbers_of(job.strategy.read(sum)) == numbers{2});
    CHECK(numbers_of(job.strategy.read(first)) == numbers{1});
  }

  TEST_CASE("replicas that are left out see what the variable is") {
    four_replicas together{4};
    auto target = together.make(mode::only_first_replica, 5);
    together.train_once([target](replica_context& context) -> task<void> {
      if (context.replica_id_in_sync_group() == 0) co_return;
      auto adding = context.assign_add(target, 1);
      auto value = co_await adding;
      CHECK(numbers_of(value) == numbers{5});
    });
  }

  TEST_CASE("a replica that never comes is not the first of its process") {
    four_replicas pairs{2};
    pairs.optimizer = sync_replicas_optimizer{rules::sgd{.learning_rate = 1}, {3, 4}};
    auto target = pairs.make(mode::only_first_replica);
    pairs.train_once(
      [target](replica_context& context) -> task<void> {
        auto adding = context.assign_add(target, 1.0 + context.replica_id_in_sync_group());
        co_await adding;
      },
      {.dead_replicas = {0}});
    CHECK(numbers_of(pairs.strategy.read(target)) == numbers{5}); // of replicas 1 and 2
  }

  TEST_CASE("if the first replica of a process is lost, the next one makes its changes") {
    four_replicas pairs{2};
    sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, {3, 4}};
    auto target = pairs.make(mode::only_first_replica);
    auto step = [=, weights = pairs.weights](replica_context& context) -> task<void> {
      auto replica = context.replica_id_in_sync_group();
      if (replica == 0) throw std::runtime_error{"no memory"};
      if (context.iteration() == 1) {
        auto adding = context.assign_add(target, 1.0 + replica);
        co_await adding;
      }
      auto giving = give(context, optimizer, weights, zeros({1}, dtype::f64));
      co_await giving;
    };
    CHECK_FALSE(play(pairs.strategy, optimizer, step, {.steps = 3, .variables = {pairs.weights}})
                  .report.failure);
    CHECK(numbers_of(pairs.strategy.read(target)) == numbers{5}); // of replicas 1 and 2
  }

  TEST_CASE("rows are scattered in the same way") {
    four_replicas pairs{2};
    auto target = pairs.strategy.make_variable("v", zeros({5, 1}),
                                               {.aggregation = variable_aggregation::sum});
    pairs.train_once([target](replica_context& context) -> task<void> {
      int64_t id = context.replica_id_in_sync_group();
      auto adding = context.scatter_add(target, rows_of({id, 4}, {1.0, 1.0}, 5));
      co_await adding;
    });
    CHECK(numbers_of(pairs.strategy.read(target)) == numbers{1, 1, 1, 1, 4});
  }

  TEST_CASE(
    "a change that replicas of one process can make only together is refused, with the way out") {
    for (auto aggregation : {mode::none, mode::mean}) {
      four_replicas pairs{2};
      auto target = pairs.make(aggregation);
      auto adding = [target](replica_context& context) { return context.assign_add(target, 1); };
      CHECK(pairs.refusal(adding)
            == error{errc::invalid_argument,
                     fmt::format("assign_add of variable 'v', whose aggregation is {}, in a step "
                                 "of `train`: the 2 replicas of this process do not wait for each "
                                 "other; make it with SUM for what adds up or with "
                                 "ONLY_FIRST_REPLICA, or change it by the strategy, outside",
                                 to_string(aggregation))});
    }
    four_replicas pairs{2};
    auto target = pairs.make(mode::sum);
    CHECK(pairs.refusal([target](replica_context& c) { return c.assign(target, 1); }).code
          == errc::invalid_argument);
  }

  TEST_CASE("a second job that asks again makes changes of its own") {
    four_replicas apart{1};
    auto target = apart.make(mode::sum);
    auto add = [target](replica_context& context) -> task<void> {
      auto adding = context.assign_add(target, 1.0 + context.replica_id_in_sync_group());
      co_await adding;
    };
    for (double sum : {10.0, 20.0}) {
      apart.train_once(add, {.ask_again_after = std::chrono::seconds{1}});
      CHECK(numbers_of(apart.strategy.read(target)) == numbers{sum});
    }
  }

  TEST_CASE("metrics count what all replicas of all processes have seen") {
    for (uint32_t in_each : {1, 2, 4}) {
      four_replicas job{in_each};
      mean_metric loss{job.strategy, "loss"};
      job.train_once([&loss](replica_context& context) -> task<void> {
        auto updating = loss.update_state(context, context.replica_id_in_sync_group());
        co_await updating;
      });
      CHECK(loss.result() == 1.5);
      loss.reset_state();
      CHECK(loss.result() == 0);
    }
  }

  TEST_CASE("processes of a cluster change variables that others hold, and their mirrors") {
    for (uint32_t owners : {1U, 2U}) {
      CAPTURE(owners);
      cluster_job job{
        .layout = {.ps = 2, .workers = 2, .replicas_per_worker = 2, .owners_meet = owners == 2},
        .steps = 3,
        .replicate_owners = owners};
      job.begin = [](node_index, strategy& strategy) {
        strategy.make_variable("sum", scalar(0), {.aggregation = mode::sum});
        strategy.make_variable("first", scalar(0), {.aggregation = mode::only_first_replica});
      };
      job.step = [](replica_context& context) -> task<void> {
        if (context.iteration() > 0) co_return;
        for (const auto& target : context.strategy().variables().last(2)) {
          auto adding = context.assign_add(target, 1.0 + context.replica_id_in_sync_group());
          co_await adding;
        }
      };
      small_cluster cluster{job};
      auto outcomes = cluster.run();
      const auto& values = outcomes.at(job.layout.chief_node()).values;
      CHECK(values.at("sum") == numbers{10});
      CHECK(values.at("first") == numbers{4});
    }
  }
}

} // namespace change_in_job_test
