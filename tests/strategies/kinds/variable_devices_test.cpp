// SPDX-License-Identifier: Apache-2.0
// Goal: variables that lie on a device are trained to the bits of those in the host's memory, and
// cross the bus for readers elsewhere only. Method: the same small jobs on a part
// of the processor that plays a GPU, in virtual time, with bytes counted; refusals.
#include "messages/mapped.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/kinds/central_storage_strategy.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/one_device_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/placed_job.hpp"

#include <cmath>

namespace variable_devices_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<cpu_device> played_gpu(uint32_t streams, size_t bytes_max = size_t{1} << 30) {
  return std::make_shared<cpu_device>(
    0, cpu_device_options{.streams = streams, .plays_gpu = true, .bytes_max = bytes_max});
}

placed_job make_job(const placed_job_layout& where, const update_plan& plan,
                    const sync_options& sync) {
  return {world::virtual_time({.seed = 3}), [](uint32_t streams) { return played_gpu(streams); },
          where, plan, sync};
}

// Replica 3 is slow, so that it is often not needed.
training_options virtual_steps(uint64_t steps) {
  training_options options{.steps = steps};
  options.pace = [](uint32_t replica, uint64_t iteration, job_time) {
    return job_time{100ms} * (replica == 3 ? 3 : 1) + job_time{1ms} * (iteration % 3);
  };
  return options;
}

placed_outcome train_in(const placed_job_layout& where, const update_plan& plan,
                        const sync_options& sync) {
  auto job = make_job(where, plan, sync);
  auto seen = job.run(virtual_steps(12));
  REQUIRE_MESSAGE(!seen.report.failure, seen.report.failure->message);
  CHECK(seen.report.step == 12);
  return job.outcome();
}

void check_ways(const update_plan& plan, const sync_options& sync) {
  CAPTURE(to_string(sync.policy));
  CAPTURE(name_of(plan.rule));
  auto expected = train_in({}, plan, sync);
  for (const auto& where : ways_with_gpu)
    CHECK(train_in(where, plan, sync) == expected);
}

// As if a machine had GPUs of those names.
gpu_source gpus_by_name() {
  return {.open =
            [](std::span<const device> named, uint32_t) {
              std::vector<std::shared_ptr<compute_device>> opened;
              for (const auto& one : named)
                opened.push_back(
                  std::make_shared<cpu_device>(one.index, cpu_device_options{.plays_gpu = true}));
              return expected<std::vector<std::shared_ptr<compute_device>>>{std::move(opened)};
            },
          .open_collectives = []() -> expected<std::shared_ptr<collective_library>> {
            return fail(errc::resource, "NCCL cannot be loaded");
          }};
}

parameter_server_options with_variables_on(std::vector<std::shared_ptr<compute_device>> devices) {
  return {.replicas = 2, .variable_devices = std::move(devices)};
}

} // namespace

TEST_SUITE("strategies/kinds/variable_devices") {
  TEST_CASE("variables on a GPU come to the bits of those of the host, under every policy") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      for (uint32_t needed : {3U, 4U})
        for (const auto& plan : placed_plans())
          check_ways(plan, {needed, 4, policy});
  }

  TEST_CASE("so they do with a clip by the norm of all variables, where updates are held") {
    sync_options sync{3, 4, sync_policy::latest_token};
    sync.clip_global_norm = 2;
    check_ways({.rule = rules::adam{.learning_rate = 0.05}}, sync);
  }

  TEST_CASE("a look at all numbers of a gradient brings it to the host, and changes nothing else") {
    sync_options sync{4, 4, sync_policy::latest_token};
    sync.require_finite = true;
    check_ways({.rule = rules::sgd{.learning_rate = 0.05}}, sync);
  }

  TEST_CASE("a job goes on from a checkpoint of another place, to the bits of one without a stop") {
    const auto plan = placed_plans()[1];
    const sync_options sync{3, 4, sync_policy::latest_token};
    auto expected = train_in({}, plan, sync);
    for (const auto& [first, second] : {std::pair{ways_with_gpu[0], placed_job_layout{}},
                                        {placed_job_layout{}, ways_with_gpu[0]},
                                        {ways_with_gpu[0], ways_with_gpu[0]}}) {
      scratch_folder folder;
      auto saving = std::make_shared<checkpoint_saver_hook>(folder.path(),
                                                            checkpoint_options{.every_steps = 5});
      auto before = make_job(first, plan, sync);
      auto options = virtual_steps(5);
      options.hooks = {saving};
      CHECK(before.run(options).report.step == 5);
      auto after = make_job(second, plan, sync);
      options = virtual_steps(7);
      options.resume = find_checkpoint(folder.path())->snapshot;
      CHECK(after.run(options).report.step == 12);
      CHECK(after.outcome() == expected);
    }
  }

  TEST_CASE("in a step on the variable's GPU nothing but batch and loss cross the bus") {
    constexpr uint32_t replicas = 4;
    auto computing = played_gpu(replicas);
    auto holding = played_gpu(1);
    auto world = world::virtual_time({.seed = 3});
    parameter_server_strategy strategy{
      world, {.replicas = replicas, .compute_devices = {computing}, .variable_devices = {holding}}};
    auto weights = strategy.make_variable("w", zeros({1000}));
    sync_replicas_optimizer optimizer{rules::adam{},
                                      {replicas, replicas, sync_policy::latest_token}};
    const auto batch = zeros({1000}), loss = zeros({1});
    auto step = [&](replica_context& context) -> task<void> {
      auto reading = context.read_on_device({weights});
      auto values = co_await reading;
      auto work = [values, batch, loss](std::stop_token, compute_stream& on) {
        const tensor terms[]
          = {value_or_throw(on.resident(values)).front(), value_or_throw(on.to_device(batch))};
        auto there = value_or_throw(on.make(loss.type(), loss.extents()));
        static_cast<void>(value_or_throw(on.to_host(there)));
        return value_or_throw(on.sum(terms));
      };
      auto computing_it = context.compute(std::move(work));
      auto gradient = co_await computing_it;
      values.clear();
      auto applying = optimizer.apply_gradients(context, gradient, weights);
      co_await applying;
    };
    auto count = [&](uint64_t steps) {
      auto up = computing->bytes_from_host() + holding->bytes_from_host();
      auto down = computing->bytes_to_host() + holding->bytes_to_host();
      uint64_t made = 0;
      training_options options{.steps = steps};
      options.pace = [](uint32_t, uint64_t, job_time) { return 100ms; };
      options.on_step = [&made](const step_record& record) { made += record.accepted.size(); };
      CHECK(!play(strategy, optimizer, step, options).report.failure);
      CHECK(made == steps * replicas);
      return std::pair{computing->bytes_from_host() + holding->bytes_from_host() - up,
                       computing->bytes_to_host() + holding->bytes_to_host() - down};
    };
    static_cast<void>(count(1)); // the variable and its slots come to the GPU
    auto few = count(10);        // each job reads the variables, too
    auto many = count(30);
    CHECK(many.first - few.first == 20 * replicas * batch.bytes());
    CHECK(many.second - few.second == 20 * replicas * loss.bytes());
  }

  TEST_CASE("variables on one stream are updated together, and gradients of some alone refused") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{
      world, {.variable_devices = {played_gpu(2)}}}; // four on one of its streams, then on the next
    for (const auto* name : {"a", "b", "c", "d", "e", "f"})
      strategy.make_variable(name, zeros({2}));
    const auto all = strategy.trainable_variables();
    sync_options by_one{1, 1}, clipped{1, 1};
    clipped.clip_global_norm = std::sqrt(6 * 2) / 2;
    std::vector<std::string> updated;
    training_options options{.steps = 1};
    options.on_step = [&](const step_record& record) {
      for (const auto& update : record.updates)
        updated.push_back(update.variable);
    };
    auto train_some = [&](size_t count, const sync_options& how) {
      sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 1}, how};
      auto step = [&, count](replica_context& context) -> task<void> {
        std::vector<gradient_and_variable> gradients;
        for (size_t i = 0; i < count; ++i)
          gradients.push_back({array({2}, {1, 1}), all[i % all.size()]});
        auto applying = optimizer.apply_gradients(context, std::move(gradients));
        co_await applying;
      };
      return play(strategy, optimizer, step, options).report.failure;
    };
    double expected = 0;
    for (const auto& [how, change] : {std::pair{by_one, 1.0}, {clipped, 0.5}}) {
      updated.clear();
      CHECK_FALSE(train_some(6, how));
      std::ranges::sort(updated);
      CHECK(updated == std::vector<std::string>{"a and 3 more", "e and 1 more"});
      expected -= change;
      for (const auto& each : all)
        CHECK(numbers_of(strategy.read(each)) == numbers{expected, expected});
    }
    auto is_refused = [&](size_t count, const std::string& line) {
      auto failure = train_some(count, by_one);
      return failure && failure->message.find(line) != std::string::npos;
    };
    CHECK(is_refused(5, "apply_gradients got no gradient for variable 'f', which is updated "
                        "together with 'e'; give those of a step in one call"));
    CHECK(is_refused(7, "apply_gradients got two gradients for variable 'a'; give their sum or "
                        "mean"));
  }

  TEST_CASE("a run reads and updates the variables of a stream together, and some by themselves") {
    auto world = world::virtual_time();
    auto computing = played_gpu(2);
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(2),
                                .compute_devices = {computing},
                                .gpus = gpus_by_name(),
                                .variable_devices = {played_gpu(2)}}};
    for (const auto* name : {"a", "b", "c", "d", "e", "f"})
      strategy.make_variable(name, zeros({2}));
    const std::vector<variable> all{strategy.variables().begin(), strategy.variables().end()};
    const optimizer descent{rules::sgd{.learning_rate = 1}, {.aggregation = reduce_op::mean}};
    // Brings what each replica reads to the host, and then gives gradients of the first ones.
    auto step = [&](size_t given) {
      auto read = strategy.run([&](replica_context& context) -> task<numbers> {
        auto reading = context.read_on_device(all);
        auto values = co_await reading;
        auto arrays = mapped(values, [](auto& value) { return &value; });
        auto bringing = context.bring_to_host(std::move(arrays));
        co_await bringing;
        auto firsts = mapped(values, [](const auto& value) { return numbers_of(value)[0]; });
        values.clear();
        std::vector<gradient_and_variable> gradients;
        for (size_t i = 0; i < given; ++i)
          gradients.push_back({array({2}, {1, 1}), all[i]});
        if (given == 0) co_return firsts;
        auto applying = descent.apply_gradients(context, std::move(gradients));
        co_await applying;
        co_return firsts;
      });
      std::vector<numbers> by_replica;
      for (uint32_t i = 0; i < 2; ++i) {
        by_replica.emplace_back();
        for (const auto& one : read)
          by_replica[i].push_back(one.select(i));
      }
      return by_replica;
    };
    auto both = [](const numbers& one) { return std::vector<numbers>{one, one}; };
    CHECK(step(6) == both({0, 0, 0, 0, 0, 0}));
    REQUIRE(strategy.bundles().all().size() == 2);
    CHECK(strategy.bundles().all()[0].variables == std::vector<size_t>{0, 1, 2, 3});
    CHECK(step(3) == both({-1, -1, -1, -1, -1, -1}));
    CHECK(step(0) == both({-2, -2, -2, -1, -1, -1}));
    strategy.assign(all[1], 7);
    CHECK(step(4) == both({-2, 7, -2, -1, -1, -1}));
    strategy.run([&](replica_context& context) -> task<void> {
      auto assigning = context.assign(all[0], context.replica_id_in_sync_group());
      co_await assigning;
    });
    CHECK(step(6) == std::vector<numbers>{{0, 6, -3, -2, -1, -1}, {1, 6, -3, -2, -1, -1}});
    CHECK(step(0) == std::vector<numbers>{{-1, 5, -4, -3, -2, -2}, {0, 5, -4, -3, -2, -2}});
    const std::vector<variable> tied{all[2], all[2]};
    strategy.run([&](replica_context& context) -> task<void> {
      auto reading = context.read_on_device(tied);
      auto values = co_await reading;
      for (const auto& value : values)
        CHECK(value.extents() == shape{2});
    });
  }

  TEST_CASE("variables of another strategy are not taken for those of a bundle") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world,
                               {.compute_devices = {played_gpu(1)},
                                .gpus = gpus_by_name(),
                                .variable_devices = {played_gpu(1)}}};
    mirrored_strategy other{world};
    std::vector<variable> foreign;
    for (const auto* name : {"a", "b"}) {
      strategy.make_variable(name, array({1}, {1}));
      foreign.push_back(other.make_variable(name, array({1}, {5})));
    }
    strategy.run([&](replica_context& context) -> task<void> {
      auto reading = context.read_on_device(foreign);
      auto values = co_await reading;
      CHECK(numbers_of(values[1]) == numbers{5});
    });
  }

  TEST_CASE("a job with a chief, and runs before and after it, see each other's changes") {
    auto world = world::virtual_time();
    one_device_strategy strategy{world, "gpu:0", gpus_by_name(), {played_gpu(1)}};
    for (const auto* name : {"a", "b"})
      strategy.make_variable(name, zeros({1}));
    const std::vector<variable> all{strategy.variables().begin(), strategy.variables().end()};
    std::vector<gradient_and_variable> ones;
    for (const auto& each : all)
      ones.push_back({array({1}, {1}), each});
    const optimizer descent{rules::sgd{.learning_rate = 1}};
    numbers seen;
    auto run = [&] {
      strategy.run([&](replica_context& context) -> task<void> {
        auto reading = context.read_on_device(all);
        auto values = co_await reading;
        auto bringing = context.bring_to_host({&values[0], &values[1]});
        co_await bringing;
        CHECK(numbers_of(values[0]) == numbers_of(values[1]));
        seen.push_back(numbers_of(values[0])[0]);
        values.clear();
        auto applying = descent.apply_gradients(context, ones);
        co_await applying;
      });
    };
    run();
    sync_replicas_optimizer counting{rules::sgd{.learning_rate = 10}, {1, 1}};
    auto step = [&](replica_context& context) -> task<void> {
      auto applying = counting.apply_gradients(context, ones);
      co_await applying;
    };
    CHECK(!play(strategy, counting, step, {.steps = 2}).report.failure);
    run();
    run();
    CHECK(seen == numbers{0, -21, -22});
  }

  TEST_CASE("values that are read, changed by hand or averaged come to the host's memory") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, with_variables_on({played_gpu(1)})};
    auto weights = strategy.make_variable("w", array({2, 1}, {1, 2}));
    auto count = strategy.make_variable("n", array({1}, {4}, dtype::i64));
    CHECK(weights.place() == device{device_kind::cuda, 0});
    CHECK(numbers_of(strategy.read(weights)) == numbers{1, 2});
    CHECK(numbers_of(strategy.assign_add(weights, array({2, 1}, {10, 10}))) == numbers{11, 12});
    CHECK(numbers_of(strategy.read(weights)) == numbers{11, 12});
    CHECK(numbers_of(strategy.assign(count, 7)) == numbers{7});
    CHECK(numbers_of(strategy.read(count)) == numbers{7});
    CHECK(strategy.read(weights).data() == strategy.read(weights).data()); // copied once
  }

  TEST_CASE("a run trains variables on a GPU, too, read where its replicas compute") {
    auto train = [](strategy& strategy) {
      auto weights = strategy.make_variable("w", array({2}, {1, 2}));
      optimizer optimizer{rules::momentum{.learning_rate = 0.5}};
      for (int i = 0; i < 3; ++i)
        strategy.run([&](replica_context& context) -> task<void> {
          auto reading = context.read_on_device({weights});
          auto values = co_await reading;
          auto work = [values](std::stop_token, compute_stream& on) {
            const tensor twice[]
              = {value_or_throw(on.to_device(values[0])), value_or_throw(on.to_device(values[0]))};
            return value_or_throw(on.sum(twice));
          };
          auto computing = context.compute(std::move(work));
          auto gradient = co_await computing;
          values.clear();
          std::vector<gradient_and_variable> gradients{{gradient, weights}};
          auto applying = optimizer.apply_gradients(context, gradients);
          co_await applying;
        });
      return numbers_of(strategy.read(weights));
    };
    auto world = world::virtual_time();
    one_device_strategy here{world};
    auto expected = train(here);
    one_device_strategy there{world, "gpu:0", gpus_by_name(), {played_gpu(1)}};
    CHECK(train(there) == expected);
    central_storage_strategy central{
      world,
      {.compute_devices = {"gpu:0"}, .gpus = gpus_by_name(), .variable_devices = {played_gpu(1)}}};
    CHECK(train(central) == expected);
  }

  TEST_CASE("mirrored replicas train variables on a GPU to the bits of those of the host") {
    const std::pair<update_plan, optimizer_options> settings[]
      = {{placed_plans()[0], {}},
         {placed_plans()[1], {.aggregation = reduce_op::mean}},
         {placed_plans()[2], {.accumulation_steps = 2}},
         {{.rule = rules::adam{.learning_rate = 0.05}}, {.clip_global_norm = 2}}};
    for (const auto& [plan, options] : settings) {
      CAPTURE(name_of(plan.rule));
      auto outcome = [&, &plan = plan, &options = options](size_t computing, size_t holding) {
        auto world = world::virtual_time({.seed = 3});
        mirrored_strategy strategy{world,
                                   {.devices = cpu_devices(4),
                                    .compute_devices = as_given(make_playing_gpus(computing, 4)),
                                    .gpus = gpus_by_name(),
                                    .variable_devices = as_given(make_playing_gpus(holding, 2))}};
        return run_placed(strategy, optimizer{plan, options});
      };
      auto expected = outcome(0, 0);
      for (size_t computing : {0U, 1U, 2U})
        for (size_t holding : {0U, 1U, 2U, 3U})
          CHECK(outcome(computing, holding) == expected);
    }
  }

  TEST_CASE("gradients that mirrored replicas leave on the variable's GPU cross no bus") {
    auto world = world::virtual_time();
    auto computing = played_gpu(3), holding = played_gpu(1);
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(3),
                                .compute_devices = {computing},
                                .gpus = gpus_by_name(),
                                .variable_devices = {holding}}};
    resident_training training{strategy};
    auto crossed = [&] {
      uint64_t bytes = 0;
      for (const auto& gpu : {computing, holding})
        bytes += gpu->bytes_from_host() + gpu->bytes_to_host();
      return bytes;
    };
    training.step(giving::all_at_once); // the variable and its slots come to the GPU
    auto before = crossed();
    for (int i = 0; i < 10; ++i)
      training.step(giving::all_at_once);
    CHECK(crossed() == before);
  }

  TEST_CASE("gradients of a narrower dtype on a GPU are added in that of their variable") {
    for (auto how : {giving::all_at_once, giving::in_buckets})
      for (auto are_variables_there : {false, true}) {
        auto world = world::virtual_time();
        mirrored_options options{
          .devices = cpu_devices(3), .compute_devices = {played_gpu(3)}, .gpus = gpus_by_name()};
        if (are_variables_there) options.variable_devices = {played_gpu(1)};
        mirrored_strategy strategy{world, options};
        CHECK(sum_of_narrow_gradients(strategy, how) == 2050);
      }
  }

  TEST_CASE("a variable that is synchronised on read lies in the host's memory") {
    auto world = world::virtual_time();
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(2), .variable_devices = {played_gpu(1)}}};
    auto seen = strategy.make_variable("seen", array({1}, {0}),
                                       {.synchronization = variable_synchronization::on_read,
                                        .aggregation = variable_aggregation::sum});
    auto weights = strategy.make_variable("w", array({1}, {0}));
    CHECK(seen.place().kind == device_kind::cpu);
    CHECK(weights.place().kind == device_kind::cuda);
  }

  TEST_CASE("variables get devices in turn, but for those that are to live beside another") {
    auto world = world::virtual_time();
    auto other = std::make_shared<cpu_device>(1, cpu_device_options{.plays_gpu = true});
    parameter_server_strategy strategy{world, with_variables_on({played_gpu(1), other})};
    auto first = strategy.make_variable("a", zeros({1}));
    auto second = strategy.make_variable("b", zeros({1}));
    auto scope = strategy.scope();
    auto guard = strategy.extended().colocate_vars_with(first);
    auto beside = strategy.make_variable("c", zeros({1}));
    CHECK(first.place().index == 0);
    CHECK(second.place().index == 1);
    CHECK(beside.place().index == 0);
    auto there = strategy.extended().colocate_vars_with(second);
    auto made = strategy.cross_replica(
      [](cross_replica_context& context) { return context.make_variable("d", zeros({1})); });
    CHECK(made.place().index == 1);
  }

  TEST_CASE("a variable that a GPU has no room for is refused when it comes to that") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, with_variables_on({played_gpu(1, 100)})};
    strategy.make_variable("w", zeros({100}));
    sync_replicas_optimizer optimizer{rules::sgd{}, {2, 2, sync_policy::latest_token}};
    CHECK(refusal_of([&] {
            static_cast<void>(
              train(strategy, optimizer, [](replica_context&) -> task<void> { co_return; }, {}));
          })
          == error{errc::resource, "gpu:0 has no room for 400 bytes: 0 of 100 are in use"});
  }

  TEST_CASE("aggregates of gradients that stay on a GPU are refused") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, with_variables_on({played_gpu(1)})};
    auto weights = strategy.make_variable("w", zeros({1}));
    sync_replicas_optimizer optimizer{rules::sgd{}, {2, 2, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      std::vector<gradient_and_variable> gradients{{zeros({1}), weights}};
      auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
      co_await applying;
    };
    auto seen = play(strategy, optimizer, step, {.steps = 1});
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message.find("the gradients of variable 'w' stay on gpu:0, and "
                                            "read_aggregates adds them up on the host")
          != std::string::npos);
  }

  TEST_CASE("a device for variables that cannot be one is refused") {
    auto world = world::virtual_time();
    auto gpu = played_gpu(1);
    auto refused = [&](parameter_server_options options) {
      return refusal_of([&] { parameter_server_strategy{world, std::move(options)}; }).message;
    };
    CHECK(refused(with_variables_on({nullptr})) == "variable_devices[0] is no device");
    CHECK(refused({.compute_devices = {gpu, nullptr}}) == "compute_devices[1] is no device");
    CHECK(refused({.compute_devices = {gpu}, .variable_devices = {gpu}})
          == "gpu:0 is one of compute_devices, and of variable_devices, too; open it once more, so "
             "that updates do not wait for what replicas compute");
    auto options = with_variables_on({gpu});
    options.replicate_owners = 2;
    CHECK(refused(options)
          == "variables that two parameter servers hold lie in the host's memory; leave "
             "variable_devices empty, or replicate_owners at 1");
    auto mirrored = mirrored_layout(cpu_devices(2));
    mirrored.variable_devices = {gpu, played_gpu(1)};
    CHECK(
      refusal_of([&] { check_layout(mirrored); }).message
      == "gpu:0 is in variable_devices twice; a mirrored strategy has one copy of each variable "
         "on each device");
  }

  TEST_CASE("a job ends, and says which, when the device of its variables is lost") {
    auto gpu = played_gpu(1);
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, with_variables_on({gpu})};
    auto weights = strategy.make_variable("w", zeros({1}));
    sync_replicas_optimizer optimizer{rules::sgd{}, {2, 2, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      if (context.local_step() == 3) gpu->lose({errc::unavailable, "CUDA error 700"});
      auto applying = optimizer.apply_gradients(context, zeros({1}), weights);
      co_await applying;
    };
    auto seen = play(strategy, optimizer, step, {.steps = 10});
    REQUIRE(seen.report.failure);
    CHECK(seen.report.failure->message.find("gpu:0 is lost: CUDA error 700") != std::string::npos);
  }
}

} // namespace variable_devices_test
