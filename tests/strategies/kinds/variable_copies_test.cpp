// SPDX-License-Identifier: Apache-2.0
// Goal: variables with a copy on each of several GPUs are trained to the bits of those of the host,
// and their gradients go from GPU to GPU. Method: GPUs that are parts of the processor, in virtual
// time; copies compared, bytes counted.
#include "messages/mapped.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/strategies/leaving_replicas.hpp"
#include "tests/strategies/placed_job.hpp"

namespace variable_copies_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// A machine with GPUs, and a mirrored strategy with a replica on each.
struct mirrored_gpus {
  mirrored_gpus(int count, bool has_nccl) : machine(count, has_nccl, {.plays_gpu = true}) {
    mirrored_options options{.devices = {}, .gpus = machine.source()};
    for (int i = 0; i < count; ++i)
      options.devices.push_back(fmt::format("gpu:{}", i));
    made = std::make_unique<mirrored_strategy>(world, std::move(options));
  }

  [[nodiscard]] troupe::strategy& strategy() { return *made; }

  /// The copy of a variable that each replica reads on its GPU.
  [[nodiscard]] std::vector<tensor> copies_of(const variable& wanted) {
    auto seen = made->run([&](replica_context& context) -> task<tensor> {
      auto reading = context.read_on_device({wanted});
      auto values = co_await reading;
      CHECK(values[0].device().index == static_cast<int>(context.replica_id_in_sync_group()));
      auto bringing = context.bring_to_host({values.data()});
      co_await bringing;
      co_return values[0];
    });
    return seen.local_results();
  }

  played_gpus machine;
  troupe::world world = world::virtual_time({.seed = 3});
  std::unique_ptr<mirrored_strategy> made;
};

/// @param computing GPUs of four replicas. @param holding GPUs that have variables.
placed_outcome trained_on(size_t computing, size_t holding, bool has_nccl, giving how) {
  auto world = world::virtual_time({.seed = 3});
  played_gpus machine{4, has_nccl, {.plays_gpu = true}};
  mirrored_strategy strategy{world,
                             {.devices = cpu_devices(4),
                              .compute_devices = as_given(make_playing_gpus(computing, 4)),
                              .gpus = machine.source(),
                              .variable_devices = as_given(make_playing_gpus(holding, 2))}};
  return trained_placed(strategy, how);
}

} // namespace

TEST_SUITE("strategies/kinds/variable_copies") {
  TEST_CASE("copies on several GPUs are trained to the bits of variables on the host") {
    for (auto how : {giving::all_at_once, giving::in_buckets}) {
      CAPTURE(static_cast<int>(how));
      auto expected = trained_on(0, 0, false, how);
      for (size_t computing : {0U, 1U, 2U, 4U})
        for (size_t holding : {1U, 2U, 4U})
          CHECK(trained_on(computing, holding, false, how) == expected);
    }
  }

  TEST_CASE("where GPUs add among themselves, too, in an order of their own") {
    for (auto how : {giving::all_at_once, giving::in_buckets})
      for (size_t computing : {2U, 4U}) {
        CAPTURE(static_cast<int>(how));
        auto expected = trained_on(computing, 1, true, how);
        for (auto holding : {size_t{0}, computing})
          CHECK(trained_on(computing, holding, true, how) == expected);
      }
  }

  TEST_CASE(
    "gradients are clipped by the norm of all, those of bundles and others, to the same bits") {
    auto trained = [](size_t holding, size_t given) {
      auto world = world::virtual_time({.seed = 3});
      mirrored_strategy strategy{
        world,
        {.devices = cpu_devices(2), .variable_devices = as_given(make_playing_gpus(holding, 2))}};
      for (const auto* name : {"a", "b", "c", "d", "e", "f", "g"})
        strategy.make_variable(name, ascending(1, {7}));
      const std::vector<variable> all{strategy.variables().begin(), strategy.variables().end()};
      const optimizer by{rules::momentum{.learning_rate = 0.1}, {.clip_global_norm = 0.3}};
      for (int step = 0; step < 3; ++step)
        strategy.run([&](replica_context& context) -> task<void> {
          random_stream noise{context.random("gradient")};
          std::vector<gradient_and_variable> gradients;
          for (size_t i = 0; i < given; ++i)
            gradients.push_back({drawn(noise, {7}), all[i]});
          auto applying = by.apply_gradients(context, std::move(gradients));
          co_await applying;
        });
      return outcome_of(strategy, all);
    };
    for (size_t given : {7U, 5U, 3U}) { // one bundle has four, the other three
      CAPTURE(given);
      auto expected = trained(0, given);
      for (size_t holding : {1U, 2U})
        CHECK(trained(holding, given) == expected);
    }
  }

  TEST_CASE("a job with a chief trains copies on several GPUs, too") {
    played_gpus machine{4, false, {.plays_gpu = true}};
    auto trained = [&](size_t gpus) {
      auto world = world::virtual_time({.seed = 3});
      mirrored_strategy strategy{world,
                                 {.devices = cpu_devices(4),
                                  .compute_devices = as_given(make_playing_gpus(gpus, 4)),
                                  .gpus = machine.source(),
                                  .variable_devices = as_given(make_playing_gpus(gpus, 2))}};
      const auto variables = placed_variables(strategy);
      sync_replicas_optimizer by{rules::adam{}, {4, 4, sync_policy::latest_token}};
      auto step = [&](replica_context& context) -> task<void> {
        auto computing = compute_placed_gradients(context, variables);
        auto gradients = co_await computing;
        auto applying = by.apply_gradients(context, std::move(gradients));
        co_await applying;
      };
      auto seen = play(strategy, by, step, {.steps = 5});
      REQUIRE_MESSAGE(!seen.report.failure, seen.report.failure->message);
      return outcome_of(strategy, variables);
    };
    auto expected = trained(0);
    for (size_t gpus : {1U, 2U, 3U})
      CHECK(trained(gpus) == expected);
  }

  TEST_CASE("every GPU has the same bits, and reads them where they lie") {
    for (auto has_nccl : {false, true}) {
      mirrored_gpus gpus{3, has_nccl};
      auto all = placed_variables(gpus.strategy());
      const optimizer by{rules::adam{}};
      for (int step = 0; step < 3; ++step)
        gpus.strategy().run([&](replica_context& context) -> task<void> {
          auto computing = compute_placed_gradients(context, all);
          auto gradients = co_await computing;
          gradients.erase(gradients.begin() + 2); // rows of some replicas only
          auto applying = by.apply_gradients(context, std::move(gradients));
          co_await applying;
        });
      for (const auto& one : all) {
        CAPTURE(one.name());
        CHECK(one.places().size() == 3);
        for (const auto& copy : gpus.copies_of(one))
          CHECK(numbers_of(copy) == numbers_of(gpus.strategy().read(one)));
      }
    }
  }

  TEST_CASE("gradients of replicas on several GPUs cross no bus") {
    for (auto has_nccl : {false, true})
      for (auto how : {giving::all_at_once, giving::in_buckets}) {
        CAPTURE(has_nccl);
        CAPTURE(static_cast<int>(how));
        mirrored_gpus gpus{3, has_nccl};
        resident_training training{gpus.strategy()};
        training.step(how); // the variable and its slots come to the GPUs
        auto before = gpus.machine.bytes_over_the_bus();
        for (int i = 0; i < 5; ++i)
          training.step(how);
        CHECK(gpus.machine.bytes_over_the_bus() == before);
      }
  }

  TEST_CASE("a replica that has changed its own copy reads that on its GPU, also after an update") {
    mirrored_gpus gpus{2, false};
    auto weights = gpus.strategy().make_variable("w", array({1}, {1}));
    gpus.strategy().run([&](replica_context& context) -> task<void> {
      auto set = [](update_context& update, variable own, const tensor& to) -> task<tensor> {
        auto assigning = update.assign(own, to);
        auto value = co_await assigning;
        co_return value;
      };
      auto updating
        = context.update(weights, set, array({1}, {10.0 + context.replica_id_in_sync_group()}));
      co_await updating;
    });
    auto seen = [&] {
      return mapped(gpus.copies_of(weights), [](const auto& copy) { return numbers_of(copy)[0]; });
    };
    CHECK(seen() == numbers{10, 11});
    const optimizer by{rules::sgd{.learning_rate = 1}};
    gpus.strategy().run([&](replica_context& context) -> task<void> {
      auto applying = by.apply_gradients(context, array({1}, {1}), weights);
      co_await applying;
    });
    CHECK(seen() == numbers{8, 9});
  }
}

} // namespace variable_copies_test
