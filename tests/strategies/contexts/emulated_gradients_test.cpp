// SPDX-License-Identifier: Apache-2.0
// Goal: a loss that is written for any tape is computed where its replica computes. Method: the
// same small jobs on the CPU and on an emulated GPU; what cannot be computed there is refused.
#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/small_job.hpp"
#include "tests/tools/gpu_job.hpp"

namespace emulated_gradients_test {

using namespace troupe;
using namespace troupe::test;

namespace {

const auto inputs = array({4, 2}, {1, 2, -1, 0.5, 3, -2, 0, 1});

/// A regression without targets: mean((x w)^2).
auto square_of_outputs() {
  return [](auto& t, std::span<const expression> variables) {
    auto outputs = t.matmul(t.constant(inputs), variables[0]);
    return t.mean(t.multiply(outputs, outputs));
  };
}

loss_function for_the_host() {
  return [](tape& t, std::span<const expression> variables) { return t.mean(variables[0]); };
}

mirrored_options on(const std::vector<std::shared_ptr<compute_device>>& devices) {
  return {.devices = cpu_devices(2), .compute_devices = devices, .gpus = gpus_here()};
}

/// The variables after two replicas have minimized in three steps.
numbers minimized(const std::vector<std::shared_ptr<compute_device>>& devices, bool by_buckets) {
  auto world = world::threads({.seed = 7, .threads = 2});
  mirrored_strategy strategy{world, on(devices)};
  auto weights = strategy.make_variable("w", array({2, 1}, {0.5, -1}));
  optimizer descent{{.rule = rules::sgd{.learning_rate = 0.125}}};
  gradient_buckets buckets{strategy, {weights}};
  for (int i = 0; i < 3; ++i)
    strategy.run([&](replica_context& context) -> task<void> {
      auto minimizing = by_buckets ? descent.minimize(context, square_of_outputs(), buckets)
                                   : descent.minimize(context, square_of_outputs(), {weights}, 2);
      auto loss = co_await minimizing;
      CHECK(loss > 0);
    });
  return numbers_of(strategy.read(weights));
}

} // namespace

TEST_SUITE("strategies/contexts/emulated_gradients") {
  TEST_CASE("a loss for any tape is computed on the replica's GPU, to the CPU's result") {
    for (auto by_buckets : {false, true}) {
      CAPTURE(by_buckets);
      auto here = minimized({}, by_buckets);
      auto kernels = emulated::kernels_run();
      auto there = minimized({first_gpu(2)}, by_buckets);
      CHECK(emulated::kernels_run() > kernels + 6 * 4); // six losses of some operations each
      REQUIRE(there.size() == here.size());
      for (size_t i = 0; i < here.size(); ++i)
        CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-6));
    }
  }

  TEST_CASE("the gradient of a variable that lies on the replica's GPU stays there") {
    auto world = world::threads({.seed = 7, .threads = 2});
    parameter_server_strategy strategy{
      world, {.compute_devices = {first_gpu(1)}, .variable_devices = {first_gpu(1)}}};
    auto weights = strategy.make_variable("w", array({2, 1}, {0.5, -1}));
    sync_replicas_optimizer optimizer{rules::sgd{}, {1, 1, sync_policy::latest_token}};
    auto step = [&](replica_context& context) -> task<void> {
      auto computing = optimizer.compute_gradients(context, square_of_outputs(), {weights});
      auto computed = co_await computing;
      const auto& made = computed.gradients_and_variables.front().gradient;
      CHECK(std::get<tensor>(made).device() == device{device_kind::cuda, 0});
      auto applying
        = optimizer.apply_gradients(context, std::move(computed.gradients_and_variables));
      co_await applying;
    };
    auto seen = play(strategy, optimizer, step, {.steps = 1});
    CHECK(!seen.report.failure);
    CHECK(numbers_of(strategy.read(weights)) != numbers{0.5, -1});
  }

  TEST_CASE("a loss for the CPU's tape alone is refused on a GPU, and the line says what helps") {
    auto world = world::threads({.seed = 7, .threads = 2});
    mirrored_strategy strategy{world, on({first_gpu(2)})};
    auto weights = strategy.make_variable("w", array({2, 1}, {0.5, -1}));
    optimizer descent{{.rule = rules::sgd{}}};
    auto run = [&] {
      strategy.run([&](replica_context& context) -> task<void> {
        auto minimizing = descent.minimize(context, for_the_host(), {weights});
        co_await minimizing;
      });
    };
    CHECK_THROWS_WITH_AS(run(),
                         doctest::Contains("computes on gpu:0, and its loss is written for a tape "
                                           "of the CPU: have it take any tape"),
                         failure);
  }
}

} // namespace emulated_gradients_test
