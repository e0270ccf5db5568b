// SPDX-License-Identifier: Apache-2.0
// A training loop of one's own: a dataset with global batches, a step on every replica, a test
// after each epoch.
#include "kernels/tensor/random.hpp"
#include "strategies/data/dataset_from_tensors.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/metrics.hpp"

#include <cstdio>

using namespace troupe;

namespace {

// Points around three centres, which are their labels.
dataset clusters(int64_t count, uint64_t seed) {
  constexpr float centres[3][2] = {{-2, 0}, {2, 0}, {0, 3}};
  auto points = zeros({count, 2});
  auto labels = zeros({count}, dtype::i64);
  random_stream numbers{{seed, "clusters"}};
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    labels.mutable_values<int64_t>()[i] = static_cast<int64_t>(i % 3);
    for (size_t axis = 0; axis < 2; ++axis)
      points.mutable_values<float>()[2 * i + axis]
        = centres[i % 3][axis] + static_cast<float>(2 * numbers.uniform() - 1);
  }
  return make_dataset_from_tensors({points, labels});
}

expression logits(tape& on, std::span<const expression> parameters, const tensor& points) {
  return on.linear(on.constant(points), parameters[0], parameters[1]);
}

} // namespace

int main() {
  auto world = world::threads({.seed = 1});
  mirrored_strategy strategy{world, {.devices = cpu_devices(2)}};
  std::vector<variable> weights{strategy.make_variable("weights", zeros({2, 3})),
                                strategy.make_variable("bias", zeros({3}))};
  optimizer momentum{rules::momentum{.learning_rate = 0.1}};
  mean_metric loss{strategy, "loss"};
  accuracy_metric accuracy{strategy, "accuracy"};

  constexpr int64_t global_batch = 60;
  auto training = strategy.experimental_distribute_dataset(
    clusters(601, 1).shuffle(601, 1).batch(global_batch));
  auto test = strategy.experimental_distribute_dataset(clusters(100, 2).batch(32));

  auto train_step = [=](replica_context& context, element batch) -> task<void> {
    // Each replica's loss is a sum over its rows, divided by all rows of the step: so the sum of
    // the gradients is the mean over the global batch.
    auto share = static_cast<double>(batch.tensors[0].extents()[0]) / global_batch;
    auto share_of_mean = [=](tape& on, std::span<const expression> parameters) {
      return on.scale(
        on.softmax_cross_entropy(logits(on, parameters, batch.tensors[0]), batch.tensors[1]),
        share);
    };
    auto minimizing = momentum.minimize(context, share_of_mean, weights);
    auto own = co_await minimizing;
    auto mean = share > 0 ? own / share : 0; // one replica has no rows in the last step
    auto updating = loss.update_state(context, mean, share);
    co_await updating;
  };

  auto test_step = [=](replica_context& context, element batch) -> task<void> {
    auto reading = context.read(weights);
    auto values = co_await reading;
    auto computing = context.compute([=](std::stop_token) {
      tape forward;
      const expression parameters[] = {forward.constant(values[0]), forward.constant(values[1])};
      return value_or_throw(forward.value(logits(forward, parameters, batch.tensors[0])));
    });
    auto predictions = co_await computing;
    auto updating = accuracy.update_state(context, predictions, batch.tensors[1]);
    co_await updating;
  };

  for (int epoch = 1; epoch <= 3; ++epoch) {
    loss.reset_state();
    accuracy.reset_state();
    for (auto batches = training.iterate(); auto batch = batches.next();)
      strategy.run(train_step, *batch);
    for (auto batches = test.iterate(); auto batch = batches.next();)
      strategy.run(test_step, *batch);
    std::printf("epoch %d: mean loss %.3f, accuracy %.3f\n", epoch, loss.result(),
                accuracy.result());
  }
}
