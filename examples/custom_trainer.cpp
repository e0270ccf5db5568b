// SPDX-License-Identifier: Apache-2.0
// A trainer of one's own: four replicas fit a line together, and none waits for the slowest.
#include "tools/job/job.hpp"

#include <cstdio>

using namespace troupe;

// The user's own gradient of (a x + b - y)^2, for 32 points of y = 3 x + 1 that nothing else draws.
tensor gradient_of(const tensor& line, const random_key& key) {
  auto a = line.values<float>()[0];
  auto b = line.values<float>()[1];
  random_stream points{key};
  float by_a = 0;
  float by_b = 0;
  for (int i = 0; i < 32; ++i) {
    auto x = static_cast<float>(points.uniform());
    auto error = a * x + b - (3 * x + 1);
    by_a += 2 * error * x / 32;
    by_b += 2 * error / 32;
  }
  return make_tensor({2}, {by_a, by_b});
}

int main(int argc, char** argv) {
  job job{argc, argv, {.defaults = {.policy = sync_policy::latest_token, .steps = 500}}};
  return job.run([&] {
    auto line = job.strategy().make_variable("line", zeros({2}));
    auto optimizer = job.optimizer(rules::momentum{.learning_rate = 0.1});

    auto step = [=](replica_context& context) -> task<void> {
      auto reading = context.read(line);
      auto value = co_await reading;
      auto key = context.random("points");
      auto computing = context.compute([=](std::stop_token) { return gradient_of(value, key); });
      auto gradient = co_await computing;
      auto applying = optimizer.apply_gradients(context, gradient, line);
      co_await applying;
    };
    auto report = job.train(optimizer, step);

    if (!job.is_chief()) return;
    auto trained = job.strategy().read(line);
    std::printf("after %lu steps: y = %.3f x + %.3f\n", static_cast<unsigned long>(report.step),
                trained.values<float>()[0], trained.values<float>()[1]);
  });
}
