// SPDX-License-Identifier: Apache-2.0
// A training loop of one's own in several processes: each runs this program, holds all variables,
// and has two replicas; gradients are all that travels.
//
//   troupe launch -n 3 -- multi_worker
//   mpirun -n 3 multi_worker
//   torchrun --no_python --nproc_per_node 3 multi_worker
//   TF_CONFIG='{"cluster": {...}, "task": {...}}' multi_worker     once for each task
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/crc32c.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/data/dataset_from_tensors.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/variables/metrics.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace troupe;

namespace {

constexpr int64_t global_batch = 48;

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

// A checksum of all variables.
uint32_t checksum(strategy& strategy) {
  uint32_t sum = 0;
  for (const auto& variable : strategy.variables())
    if (variable.trainable()) {
      auto values = strategy.read(variable);
      sum = cpu::crc32c({static_cast<const std::byte*>(values.data()), values.bytes()}, sum);
    }
  return sum;
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster, {.workers_meet = true}};
  multi_worker_mirrored_strategy strategy{world,
                                          {.devices = cpu_devices(2),
                                           .placement = server.placement(),
                                           .workers = server.trainers(),
                                           .communication = {.timeout_seconds = 30}}};
  std::vector<variable> weights{strategy.make_variable("weights", zeros({2, 3})),
                                strategy.make_variable("bias", zeros({3}))};
  optimizer momentum{rules::momentum{.learning_rate = 0.1}};
  mean_metric loss{strategy, "loss"};
  auto training = strategy.experimental_distribute_dataset(
    clusters(577, 1).shuffle(577, 1).batch(global_batch)); // each process reads its share

  auto step = [=](replica_context& context, element batch) -> task<void> {
    // The share of a replica's rows in all rows, so that the sum of the losses is their mean.
    auto share = static_cast<double>(batch.tensors[0].extents()[0]) / global_batch;
    auto share_of_mean = [=](tape& on, std::span<const expression> parameters) {
      auto logits = on.linear(on.constant(batch.tensors[0]), parameters[0], parameters[1]);
      return on.scale(on.softmax_cross_entropy(logits, batch.tensors[1]), share);
    };
    auto minimizing = momentum.minimize(context, share_of_mean, weights);
    auto own = co_await minimizing;
    auto mean = share > 0 ? own / share : 0; // some replicas have no rows in the last step
    auto updating = loss.update_state(context, mean, share);
    co_await updating;
  };
  for (int epoch = 1; epoch <= 3; ++epoch) {
    loss.reset_state();
    for (auto batches = training.iterate(); auto batch = batches.next();)
      strategy.run(step, *batch);
    auto mean = loss.result(); // all processes read it: it is the mean over all of them
    if (server.is_chief()) std::printf("epoch %d: mean loss %.3f\n", epoch, mean);
  }

  auto sums = strategy.run([sum = checksum(strategy)](replica_context& context) {
    return context.all_gather(filled(dtype::i64, {1}, sum), 0);
  });
  auto all = sums.primary().values<int64_t>();
  auto are_equal = std::ranges::all_of(all, [&](int64_t each) { return each == all[0]; });
  if (server.is_chief())
    std::printf("%zu processes with %u replicas hold %s bits\n", server.trainers().size(),
                strategy.num_replicas_in_sync(), are_equal ? "the same" : "DIFFERENT");
  return are_equal ? 0 : 1;
}

} // namespace

int main() {
  return run_main(take_part);
}
