// SPDX-License-Identifier: Apache-2.0
// A small network learns exclusive or: the same step on four replicas, one copy of the weights.
#include "kernels/tensor/random.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/metrics.hpp"

#include <cstdio>

using namespace troupe;

namespace {

struct batch {
  tensor inputs; ///< [32, 2]
  tensor labels; ///< [32]
};

// Points of the square [-1, 1]^2; the label tells whether their signs differ.
batch draw(const random_key& key) {
  batch drawn{zeros({32, 2}), zeros({32}, dtype::i64)};
  random_stream numbers{key};
  for (size_t i = 0; i < 32; ++i) {
    auto x = static_cast<float>(2 * numbers.uniform() - 1);
    auto y = static_cast<float>(2 * numbers.uniform() - 1);
    drawn.inputs.mutable_values<float>()[2 * i] = x;
    drawn.inputs.mutable_values<float>()[2 * i + 1] = y;
    drawn.labels.mutable_values<int64_t>()[i] = (x > 0) != (y > 0);
  }
  return drawn;
}

tensor random_weights(const shape& extents, const std::string& name) {
  tensor weights = zeros(extents);
  random_stream numbers{{1, name}};
  for (auto& weight : weights.mutable_values<float>())
    weight = static_cast<float>(2 * numbers.uniform() - 1);
  return weights;
}

} // namespace

int main() {
  auto world = world::threads({.seed = 1});
  mirrored_strategy strategy{world, {.devices = cpu_devices(4)}};
  std::vector<variable> weights{
    strategy.make_variable("hidden/weights", random_weights({2, 16}, "hidden")),
    strategy.make_variable("hidden/bias", zeros({16})),
    strategy.make_variable("output/weights", random_weights({16, 2}, "output")),
  };
  optimizer adam{rules::adam{.learning_rate = 0.01}, {.aggregation = reduce_op::mean}};
  mean_metric loss{strategy, "loss"};

  auto step = [=](replica_context& context, uint64_t number) -> task<void> {
    random_key key{1, "points", context.replica_id_in_sync_group(), number};
    auto model = [drawn = draw(key)](tape& on, std::span<const expression> parameters) {
      auto inputs = on.constant(drawn.inputs);
      auto hidden = on.tanh(on.linear(inputs, parameters[0], parameters[1]));
      return on.softmax_cross_entropy(on.matmul(hidden, parameters[2]), drawn.labels);
    };
    auto minimizing = adam.minimize(context, model, weights);
    auto own = co_await minimizing;
    auto updating = loss.update_state(context, own);
    co_await updating;
  };

  for (uint64_t number = 0; number < 400; ++number) {
    strategy.run(step, number);
    if (number % 100 != 99) continue;
    std::printf("step %lu: mean loss %.3f\n", static_cast<unsigned long>(number + 1),
                loss.result());
    loss.reset_state();
  }
}
