// SPDX-License-Identifier: Apache-2.0
// A job outside of Troupe's tree: replicas find a number, which an option names. The evaluation
// throws if that number is below 0.
#include "tools/job/job.hpp"

#include <cmath>
#include <cstdio>
#include <stdexcept>

using namespace troupe;

int main(int argc, char** argv) {
  double sought = 3;
  job job{argc,
          argv,
          {.about = "Finds a number by its distance.",
           .defaults = {.steps = 40},
           .evaluate = [&](std::span<const tensor> values) -> expected<double> {
             if (sought < 0) throw std::runtime_error{"no examples below 0"};
             return std::abs(values[0].values<float>()[0] - sought);
           }}};
  job.option("--sought", "NUMBER", "what is to be found", sought);
  return job.run([&] {
    auto number = job.strategy().make_variable("number", zeros({1}));
    auto optimizer = job.optimizer(rules::sgd{.learning_rate = 0.25});
    auto step = [=](replica_context& context) -> task<void> {
      auto reading = context.read(number);
      auto value = co_await reading;
      auto computing = context.compute([value, sought](std::stop_token) {
        return make_tensor({1}, {2 * (value.values<float>()[0] - static_cast<float>(sought))});
      });
      auto gradient = co_await computing;
      auto distance = std::abs(value.values<float>()[0] - sought);
      context.report(distance * distance, 1);
      auto applying = optimizer.apply_gradients(context, gradient, number);
      co_await applying;
    };
    auto report = job.train(optimizer, step);
    if (job.is_chief())
      std::printf("after %lu steps: %.3f\n", static_cast<unsigned long>(report.step),
                  job.strategy().read(number).values<float>()[0]);
  });
}
