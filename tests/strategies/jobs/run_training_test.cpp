// SPDX-License-Identifier: Apache-2.0
// Goal: `train` by runs makes the same steps in one process and in many, ends in all of them alike,
// and tells hooks what a job with a chief tells them. Method: small jobs in virtual time, and
// processes played by threads.
#include "strategies/contexts/gathered_texts.hpp"
#include "strategies/jobs/hooks.hpp"
#include "strategies/jobs/replica_check.hpp"
#include "strategies/jobs/spread_snapshot.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_workers.hpp"
#include "tests/strategies/refusal.hpp"

namespace run_training_test {

using namespace troupe;
using namespace troupe::test;

namespace {

// Gradients that depend on the variable, the replica and its iteration.
step_function drawn_step(const variable& weights) {
  optimizer momentum{rules::momentum{.learning_rate = 0.1}, {.aggregation = reduce_op::mean}};
  return [=](replica_context& context) -> task<void> {
    auto reading = context.read(weights);
    auto value = co_await reading;
    auto key = context.random("gradient");
    auto computing = context.compute([=](std::stop_token) {
      random_stream noise{key};
      auto from = numbers_of(value);
      for (auto& number : from)
        number += noise.uniform();
      return array(value.extents(), from);
    });
    auto gradient = co_await computing;
    context.report(static_cast<double>(context.replica_id_in_sync_group()), 8);
    auto applying = momentum.apply_gradients(context, gradient, weights);
    co_await applying;
  };
}

job_time replica_plus_one_seconds(uint32_t replica, uint64_t, job_time) {
  return std::chrono::seconds{replica + 1};
}

/// The course of a small job.
struct course {
  job_report report;
  std::vector<step_record> steps;
  numbers values;
};

course trained(strategy& strategy, training_options options) {
  course seen;
  auto weights = strategy.make_variable("w", zeros({3}));
  options.on_step = [&](const step_record& step) { seen.steps.push_back(step); };
  seen.report = train(strategy, drawn_step(weights), options);
  seen.values = numbers_of(strategy.read(weights));
  return seen;
}

course trained_alone(training_options options, uint64_t seed = 5) {
  auto world = world::virtual_time({.seed = seed});
  mirrored_strategy strategy{world, {.devices = cpu_devices(4)}};
  return trained(strategy, std::move(options));
}

/// The course of the same job in each of several processes, which share four replicas.
std::vector<course> trained_in(uint32_t processes,
                               const std::function<training_options(uint32_t rank)>& options) {
  std::vector<course> seen(processes);
  auto thrown = play(processes, [&](played_worker& worker) {
    multi_worker_mirrored_strategy strategy{worker.world, worker.options(4 / processes)};
    seen[worker.rank] = trained(strategy, options(worker.rank));
  });
  for (const auto& why : thrown)
    CHECK_MESSAGE(why.code == errc::none, why.message);
  return seen;
}

/// Remembers what it is told.
class witness final : public session_hook {
public:
  explicit witness(uint64_t save_every = 0) : save_every_(save_every) {}

  void begin(session_plan& plan) override {
    plan.takes_snapshots = save_every_ > 0;
    told.push_back(fmt::format("begin {}", plan.steps));
  }

  void after_step(const session_control& control, const step_record& step) override {
    told.push_back(fmt::format("step {}", step.step));
    if (step.step == stop_after) control.request_stop("seen enough");
  }

  bool wants_snapshot(uint64_t step, job_time, bool last) override {
    return save_every_ > 0 && (last || step % save_every_ == 0);
  }

  void after_snapshot(const job_snapshot& snapshot) override {
    told.push_back(fmt::format("saved {}", snapshot.step));
    snapshots.push_back(snapshot);
  }

  void on_trouble(const std::string&) override { told.emplace_back("trouble"); }

  void end(const job_report& report) override {
    told.push_back(fmt::format("end {}", report.step));
  }

  std::vector<std::string> told;
  std::vector<job_snapshot> snapshots;
  uint64_t stop_after = 0;

private:
  uint64_t save_every_;
};

using lines = std::vector<std::string>;

} // namespace

TEST_SUITE("strategies/jobs/run_training") {
  TEST_CASE("every step is of all replicas, and its record says which one was waited for") {
    auto seen = trained_alone({.steps = 3, .pace = replica_plus_one_seconds});
    CHECK(seen.report.step == 3);
    CHECK_FALSE(seen.report.failure);
    CHECK_FALSE(seen.report.stopped);
    REQUIRE(seen.steps.size() == 3);
    const auto& last = seen.steps[2];
    CHECK(last.step == 3);
    CHECK(last.began == std::chrono::seconds{8});
    CHECK(last.ended == std::chrono::seconds{12});
    CHECK(last.needed == 4);
    CHECK(last.live == 4);
    REQUIRE(last.accepted.size() == 4);
    for (uint32_t i = 0; i < 4; ++i) {
      const auto& one = last.accepted[i];
      CHECK(one.replica == i);
      CHECK(one.local_step == 2);
      CHECK(one.compute == std::chrono::seconds{i + 1});
      CHECK(one.arrived == std::chrono::seconds{8 + i + 1});
      CHECK(one.waited == std::chrono::seconds{3 - i});
      CHECK(one.loss == i);
      CHECK(one.examples == 8);
    }
  }

  TEST_CASE("four replicas come to the same bits in one process, in two and in four") {
    auto alone = trained_alone({.steps = 5});
    for (uint32_t processes : {1U, 2U, 4U})
      for (const auto& each :
           trained_in(processes, [](uint32_t) { return training_options{.steps = 5}; })) {
        CHECK(each.values == alone.values);
        CHECK(each.report.step == 5);
      }
  }

  TEST_CASE("processes that compare their copies go on while these are the same") {
    auto unwatched = trained_alone({.steps = 4});
    for (const auto& seen : trained_in(
           2, [](uint32_t) { return training_options{.steps = 4, .check_replicas_every = 1}; })) {
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.values == unwatched.values);
    }
  }

  TEST_CASE("copies that differ end the job in all processes, with the name of each") {
    constexpr uint32_t processes = 4;
    std::vector<job_report> reports(processes);
    auto thrown = play(processes, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      auto weights = strategy.make_variable("w", zeros({3}));
      auto drifting = strategy.make_variable("drifting", zeros({3}));
      auto step = [drifting, body = drawn_step(weights)](replica_context& context) -> task<void> {
        auto running = body(context);
        co_await running;
        if (context.replica_id_in_sync_group() != 2 || context.local_step() < 2) co_return;
        auto writing = context.assign(drifting, array({3}, {0, 0, 0x1p-20F}));
        co_await writing;
      };
      reports[worker.rank] = train(
        strategy, step, {.steps = 9, .check_replicas_every = 2, .on_failure = [](const error&) {}});
    });
    for (const auto& report : reports) {
      CHECK(report.step == 4);
      REQUIRE(report.failure);
      CHECK(report.failure->code == errc::failed_precondition);
      CHECK(report.failure->message.find(
              "after step 4, variable 'drifting' of worker:2 is not that of the other processes")
            == 0);
    }
  }

  TEST_CASE(
    "processes differ that have another value than most, or, without a majority, than the first") {
    using ranks = std::vector<size_t>;
    auto differ = [](std::vector<int64_t> sums) { return ranks_that_differ(sums); };
    CHECK(differ({7}).empty());
    CHECK(differ({7, 7, 7}).empty());
    CHECK(differ({7, 8, 7, 9}) == ranks{1, 3});
    CHECK(differ({7, 8, 8}) == ranks{0});
    CHECK(differ({7, 8}) == ranks{1});
    CHECK(differ({7, 8, 9}) == ranks{1, 2});
  }

  TEST_CASE("a job that goes on from a snapshot makes the steps of one that was never stopped") {
    auto whole = trained_alone({.steps = 6, .pace = replica_plus_one_seconds});
    auto hook = std::make_shared<witness>(2);
    static_cast<void>(
      trained_alone({.steps = 3, .hooks = {hook}, .pace = replica_plus_one_seconds}));
    REQUIRE(hook->snapshots.size() == 2);
    auto rest
      = trained_alone({.steps = 4, .resume = hook->snapshots[0], .pace = replica_plus_one_seconds});
    CHECK(rest.values == whole.values);
    REQUIRE(rest.steps.size() == 4);
    CHECK(rest.steps[0].step == 3);
    CHECK(rest.steps[3].ended == whole.steps[5].ended);
    for (const auto& each : trained_in(
           2, [&](uint32_t) { return training_options{.steps = 4, .resume = hook->snapshots[0]}; }))
      CHECK(each.values == whole.values);
  }

  TEST_CASE("a second job of a strategy goes on where the first one left its variables") {
    auto world = world::virtual_time({.seed = 5});
    mirrored_strategy strategy{world, {.devices = cpu_devices(4)}};
    auto weights = strategy.make_variable("w", zeros({3}));
    auto step = drawn_step(weights);
    CHECK(train(strategy, step, {.steps = 2}).step == 2);
    CHECK(train(strategy, step, {.steps = 3}).step == 5);
    CHECK(numbers_of(strategy.read(weights)) == trained_alone({.steps = 5}).values);
  }

  TEST_CASE("hooks are told of everything, in the first process only") {
    std::vector<std::shared_ptr<witness>> hooks{std::make_shared<witness>(2),
                                                std::make_shared<witness>(2)};
    static_cast<void>(trained_in(
      2, [&](uint32_t rank) { return training_options{.steps = 3, .hooks = {hooks[rank]}}; }));
    CHECK(hooks[0]->told
          == lines{"begin 3", "step 1", "step 2", "saved 2", "step 3", "saved 3", "end 3"});
    CHECK(hooks[1]->told.empty());
    CHECK(hooks[0]->snapshots[1].replicas.size() == 4);
    CHECK(hooks[0]->snapshots[1].replicas[3].iteration == 3);
  }

  TEST_CASE("evaluation sees the variables as they are after its step") {
    std::vector<std::pair<uint64_t, double>> seen;
    evaluation look{
      .every_steps = 2,
      .evaluate = [](std::span<const tensor> values) { return numbers_of(values[0])[0]; },
      .on_result = [&](uint64_t step, double value) { seen.emplace_back(step, value); }};
    auto course = trained_alone({.steps = 4, .evaluation = look});
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].first == 2);
    CHECK(seen[1] == std::pair<uint64_t, double>{4, course.values[0]});
  }

  TEST_CASE("an evaluation that throws is told in a warning, and the next one is made") {
    std::vector<uint64_t> results;
    lines warnings;
    evaluation look{.every_steps = 2,
                    .evaluate = [](std::span<const tensor>) -> double { throw 5; },
                    .on_result = [&](uint64_t step, double) { results.push_back(step); }};
    auto options = training_options{.steps = 4, .evaluation = look};
    options.on_warning = [&](const std::string& line) { warnings.push_back(line); };
    CHECK_FALSE(trained_alone(options).report.failure);
    CHECK(warnings
          == lines{"the evaluation at step 2 has failed, and training goes on: threw something "
                   "that is no std::exception",
                   "the evaluation at step 4 has failed, and training goes on: threw something "
                   "that is no std::exception"});
    CHECK(results.empty());
  }

  TEST_CASE("a hook that has planned no snapshots is not asked whether it wants one") {
    class eager final : public session_hook {
    public:
      bool wants_snapshot(uint64_t, job_time, bool) override { return asked = true; }

      bool asked = false;
    };

    auto hook = std::make_shared<eager>();
    CHECK_FALSE(trained_alone({.steps = 2, .hooks = {hook}}).report.failure);
    CHECK_FALSE(hook->asked);
  }

  TEST_CASE("a hook that asks to stop ends a job of one process with its step") {
    auto hook = std::make_shared<witness>();
    hook->stop_after = 2;
    auto seen = trained_alone({.steps = 9, .hooks = {hook}});
    CHECK(seen.report.step == 2);
    CHECK(seen.report.stopped == "seen enough");
  }

  TEST_CASE("a process that is asked to stop ends all of them after the same step") {
    std::stop_source source;
    auto seen = trained_in(2, [&](uint32_t rank) {
      training_options options{.steps = 1'000'000};
      if (rank == 0) options.hooks = {std::make_shared<witness>()};
      if (rank == 0)
        options.evaluation = {.every_steps = 7,
                              .evaluate =
                                [&](std::span<const tensor>) {
                                  source.request_stop();
                                  return 0.0;
                                },
                              .on_result = [](uint64_t, double) {}};
      if (rank == 1) options.stop = source.get_token();
      return options;
    });
    CHECK(seen[0].report.step >= 7);
    CHECK(seen[0].report.step == seen[1].report.step);
    CHECK(seen[0].values == seen[1].values);
    CHECK(seen[1].report.stopped == "asked to stop");
    CHECK(seen[0].report.stopped == "asked to stop by worker:1");
  }

  TEST_CASE("the number of steps is the first process's, whatever hooks make of it") {
    auto seen = trained_in(2, [&](uint32_t rank) {
      training_options options{.steps = rank == 0 ? 50U : 1U};
      if (rank == 0) options.hooks = {stop_at_step_hook::at(4)};
      return options;
    });
    for (const auto& each : seen) {
      CHECK(each.report.step == 4);
      CHECK_FALSE(each.report.stopped);
    }
  }

  TEST_CASE("a job that begins at the step to stop at ends in all processes, without a step") {
    for (uint32_t processes : {1U, 2U, 4U}) {
      CAPTURE(processes);
      auto hook = std::make_shared<witness>(1);
      auto options_of = [&](uint32_t rank) {
        training_options options{.steps = 50};
        if (rank == 0) options.hooks = {stop_at_step_hook::at(4), hook};
        return options;
      };
      auto before = trained_in(processes, options_of);
      REQUIRE(hook->snapshots.size() == 4);
      hook->told.clear();
      auto seen = trained_in(processes, [&](uint32_t rank) {
        auto options = options_of(rank);
        if (rank == 0) options.resume = hook->snapshots.back();
        return options;
      });
      CHECK(hook->told == lines{"begin 0", "end 4"});
      for (uint32_t rank = 0; rank < processes; ++rank) {
        CHECK(seen[rank].report.step == 4);
        CHECK_FALSE(seen[rank].report.failure);
        CHECK_FALSE(seen[rank].report.stopped);
        CHECK(seen[rank].values == before[rank].values);
      }
    }
  }

  TEST_CASE("a hook that throws ends the job with what it threw") {
    class thrower final : public session_hook {
      void after_step(const session_control&, const step_record&) override {
        throw failure{{errc::resource, "no room"}};
      }
    };

    auto seen = trained_alone({.steps = 9, .hooks = {std::make_shared<thrower>()}});
    CHECK(seen.report.step == 1);
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message == "no room");
  }

  TEST_CASE("a replica that throws ends the job in all processes, and its own says why") {
    std::vector<job_report> reports(2);
    std::vector<double> values(2);
    auto hook = std::make_shared<witness>(1);
    auto thrown = play(2, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(2)};
      auto weights = strategy.make_variable("w", zeros({3}));
      auto healthy = drawn_step(weights);
      auto step = [=](replica_context& context) -> task<void> {
        if (context.replica_id_in_sync_group() == 3 && context.iteration() == 2)
          throw std::runtime_error{"broken data"};
        auto stepping = healthy(context);
        co_await stepping;
      };
      reports[worker.rank] = train(strategy, step, {.steps = 9, .hooks = {hook}});
      values[worker.rank] = numbers_of(strategy.read(weights))[0];
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    for (const auto& report : reports) {
      CHECK(report.step == 2);
      REQUIRE(report.failure);
    }
    CHECK(reports[1].failure->code == errc::user_code);
    CHECK(reports[1].failure->message == "broken data");
    CHECK(reports[0].failure->code == errc::unavailable);
    CHECK(reports[0].failure->message.find("worker:1") != std::string::npos);
    CHECK(values[0] == values[1]);
    CHECK(hook->told
          == lines{"begin 9", "step 1", "saved 1", "step 2", "saved 2", "trouble", "end 2"});
  }

  TEST_CASE("a snapshot holds what copies of all processes come to") {
    auto hook = std::make_shared<witness>(2);
    auto thrown = play(2, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      auto weights = strategy.make_variable("w", zeros({3}));
      auto seen = strategy.make_variable("seen", scalar(0),
                                         {.synchronization = variable_synchronization::on_read,
                                          .aggregation = variable_aggregation::sum});
      auto healthy = drawn_step(weights);
      auto step = [=](replica_context& context) -> task<void> {
        auto stepping = healthy(context);
        co_await stepping;
        auto adding = context.assign_add(seen, 10.0 + context.replica_id_in_sync_group());
        co_await adding;
      };
      static_cast<void>(
        train(strategy, step, {.steps = 3, .variables = {weights}, .hooks = {hook}}));
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    REQUIRE(hook->snapshots.size() == 2);
    const auto& saved = hook->snapshots[0].variables[1];
    CHECK(saved.name == "seen");
    CHECK(numbers_of(saved.state.value) == numbers{42});
  }

  TEST_CASE("all processes go on from what the first one has, with slots and all") {
    auto hook = std::make_shared<witness>(2);
    static_cast<void>(trained_alone({.steps = 2, .hooks = {hook}}));
    auto whole = trained_alone({.steps = 6});
    for (uint32_t processes : {2U, 4U})
      for (const auto& each : trained_in(processes, [&](uint32_t rank) {
             training_options options{.steps = rank == 0 ? 4U : 1U};
             if (rank == 0) options.resume = hook->snapshots[0];
             return options;
           })) {
        CHECK(each.values == whole.values);
        CHECK(each.report.step == 6);
      }
  }

  TEST_CASE("a replica keeps things from step to step, and in snapshots of all processes") {
    // Counts its steps in what it keeps, from its index on.
    auto counting = [](const variable& weights) -> step_function {
      return [=, healthy = drawn_step(weights)](replica_context& context) -> task<void> {
        auto index = static_cast<float>(context.replica_id_in_sync_group());
        auto before = context.kept("count").value_or(scalar(index));
        CHECK(numbers_of(before)[0] == index + static_cast<float>(context.iteration()));
        context.keep("count", scalar(numbers_of(before)[0] + 1));
        auto stepping = healthy(context);
        co_await stepping;
      };
    };
    auto hook = std::make_shared<witness>(2);
    auto train_in
      = [&](uint32_t processes, uint64_t steps, const std::optional<job_snapshot>& from) {
          auto thrown = play(processes, [&](played_worker& worker) {
            multi_worker_mirrored_strategy strategy{worker.world, worker.options(4 / processes)};
            auto step = counting(strategy.make_variable("w", zeros({3})));
            training_options options{.steps = steps};
            if (worker.rank == 0) options.resume = from;
            if (worker.rank == 0) options.hooks = {hook};
            CHECK_FALSE(train(strategy, step, options).failure);
          });
          for (const auto& why : thrown)
            CHECK_MESSAGE(why.code == errc::none, why.message);
        };
    train_in(2, 2, std::nullopt);
    for (uint32_t processes : {1U, 2U, 4U})
      train_in(processes, 2, hook->snapshots[0]);
    REQUIRE(hook->snapshots.size() == 4);
    for (const auto& snapshot : hook->snapshots) {
      REQUIRE(snapshot.replicas.size() == 4);
      for (uint32_t i = 0; i < 4; ++i) {
        REQUIRE(snapshot.replicas[i].kept.size() == 1);
        CHECK(numbers_of(snapshot.replicas[i].kept[0].value)
              == numbers{static_cast<double>(i + snapshot.step)});
      }
    }
  }

  TEST_CASE("a replica cannot keep what no message holds") {
    const std::pair<std::string, tensor> kept[]
      = {{std::string(5000, 'n'), scalar(0)},
         {"deep", zeros({1}).reshape(shape{std::vector<int64_t>(33, 1)})}};
    for (const auto& [name, value] : kept) {
      auto world = world::virtual_time({.seed = 5});
      mirrored_strategy strategy{world};
      static_cast<void>(strategy.make_variable("w", zeros({3})));
      auto step = [name, value](replica_context& context) -> task<void> {
        context.keep(name, value);
        co_return;
      };
      auto report = train(strategy, step, {.steps = 1});
      REQUIRE(report.failure);
      CHECK(report.failure->code == errc::limit_exceeded);
      CHECK(report.failure->message.starts_with("keep: a name of "));
    }
  }

  TEST_CASE("every process refuses what is no snapshot") {
    const std::pair<std::string, std::string> refused[]
      = {{"garbage", "no job of Troupe's"},
         {"1\n0 1 4 1 w\n", "'w' has other elements than announced"},
         {"1\n0 2 -1 -3 1 w\n", "'w' has other elements than announced"},
         {"1\n0 1 3 1 w\n10 troupe.job 2 {}\n", "troupe.job"},
         {"1\n0 1 3 1 w\n10 troupe.job 999999999999 {", "troupe.job"}};
    for (const auto& [text, why] : refused) {
      CAPTURE(text);
      const std::string what = "what the job goes on from";
      auto thrown = play(2, [&](played_worker& worker) {
        multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
        if (worker.rank == 1) {
          auto reason
            = refusal_of([&] { static_cast<void>(spread_snapshot(strategy, std::nullopt)); });
          CHECK(reason.code == errc::malformed);
          CHECK_MESSAGE(reason.message.find(why) != std::string::npos, reason.message);
          return;
        }
        static_cast<void>(gather_texts(strategy, what, text));
        if (text == "garbage") return;
        auto three = zeros({3});
        static_cast<void>(strategy.cross_replica([=](cross_replica_context& context) {
          return context.reducing().gather_rows(what, {three});
        }));
      });
      for (const auto& other : thrown)
        CHECK_MESSAGE(other.code == errc::none, other.message);
    }
  }

  TEST_CASE("texts of all processes come in the order of ranks, whatever is in them") {
    const lines texts{"", "two\nlines", std::string{"\0\xff", 2}};
    auto thrown = play(3, [&](played_worker& worker) {
      multi_worker_mirrored_strategy strategy{worker.world, worker.options(1)};
      CHECK(gather_texts(strategy, "texts", texts[worker.rank]) == texts);
    });
    for (const auto& why : thrown)
      CHECK_MESSAGE(why.code == errc::none, why.message);
    auto world = world::virtual_time();
    mirrored_strategy alone{world};
    CHECK(gather_texts(alone, "texts", "mine") == lines{"mine"});
  }

  TEST_CASE("refuses what it cannot do") {
    auto world = world::virtual_time({.seed = 5});
    mirrored_strategy strategy{world};
    auto reason = [&](training_options options) {
      return refusal_of([&] {
        static_cast<void>(train(
          strategy, [](replica_context&) -> task<void> { co_return; }, options));
      });
    };
    CHECK(reason({}).message == "the strategy has no variables; make one before training");
    strategy.make_variable("w", zeros({3}));
    CHECK(reason({.steps = 0}).message == "steps is 0; training needs at least 1");
    auto message = reason({.dead_replicas = {0}});
    CHECK(message.code == errc::invalid_argument);
    CHECK(message.message
          == "dead_replicas has no meaning where every step needs all replicas; leave it out");
    CHECK(reason({.stops_on_loss = true}).message.find("stops_on_loss has no meaning") == 0);
    CHECK(reason({.resume = job_snapshot{.step = 2, .seed = 6}}).message
          == "the checkpoint of step 2 is of a world with seed 6, this one has 5");
    CHECK(reason({.resume = job_snapshot{.step = 2, .seed = 5}}).code == errc::not_found);
    parameter_server_strategy other{world};
    other.make_variable("w", zeros({3}));
    auto why = refusal_of([&] {
      static_cast<void>(train(other, [](replica_context&) -> task<void> { co_return; }, {}));
    });
    CHECK(why.code == errc::unimplemented);
    CHECK(why.message.find("give `train` a sync_replicas_optimizer") != std::string::npos);
  }
}

} // namespace run_training_test
