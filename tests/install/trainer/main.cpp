// SPDX-License-Identifier: Apache-2.0
// A trainer outside of Troupe's tree: two replicas find the number 3, in virtual time.
#include "strategies/jobs/training.hpp"

#include <cstdio>

using namespace troupe;

int main() {
  auto world = world::virtual_time({.seed = 1});
  parameter_server_strategy strategy{world, {.replicas = 2}};
  auto number = strategy.make_variable("number", zeros({1}));
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.25},
                                    {.replicas_to_aggregate = 2, .total_num_replicas = 2}};

  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(number);
    auto value = co_await reading;
    auto computing = context.compute([value](std::stop_token) {
      return make_tensor({1}, {2 * (value.values<float>()[0] - 3)}); // of the squared distance
    });
    auto gradient = co_await computing;
    auto applying = optimizer.apply_gradients(context, gradient, number);
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = 10});

  auto trained = strategy.read(number);
  std::printf("after %lu steps: %.3f\n", static_cast<unsigned long>(report.step),
              trained.values<float>()[0]);
  return report.failure ? 1 : 0;
}
