// SPDX-License-Identifier: Apache-2.0
// A data-parallel step of a multilayer perceptron of 25 million parameters.
//
// data_parallel_step REPLICAS BATCH STEPS   prints the seconds of each step; as a part of a
// cluster, with so many replicas in each process, the first one does
#include "kernels/tensor/random.hpp"
#include "messages/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace troupe;

namespace {

constexpr int64_t widths[] = {1024, 3072, 3072, 3072, 1024};

tensor random_values(const shape& extents, double scale, const std::string& name) {
  tensor values = zeros(extents);
  random_stream numbers{{1, name}};
  for (auto& value : values.mutable_values<float>())
    value = static_cast<float>(scale * (2 * numbers.uniform() - 1));
  return values;
}

expression model(tape& on, std::span<const expression> parameters, const tensor& inputs,
                 const tensor& labels) {
  auto value = on.constant(inputs);
  for (size_t layer = 0; layer < parameters.size(); layer += 2) {
    value = on.add_bias(on.matmul(value, parameters[layer]), parameters[layer + 1]);
    if (layer + 2 < parameters.size()) value = on.relu(value);
  }
  return on.softmax_cross_entropy(value, labels);
}

void take_part(uint32_t replicas, int64_t batch, int steps) {
  auto world = world::threads();
  server server{
    world, resolve({}, process_environment()), {.workers_meet = true, .insecure_network = true}};
  multi_worker_mirrored_strategy strategy{world,
                                          {.devices = cpu_devices(replicas),
                                           .placement = server.placement(),
                                           .workers = server.trainers()}};
  std::vector<variable> weights;
  for (size_t i = 0; i + 1 < std::size(widths); ++i) {
    auto name = std::to_string(i);
    auto scale = 1 / std::sqrt(static_cast<double>(widths[i]));
    weights.push_back(strategy.make_variable(
      "weights" + name, random_values({widths[i], widths[i + 1]}, scale, name)));
    weights.push_back(strategy.make_variable("bias" + name, zeros({widths[i + 1]})));
  }
  optimizer momentum{rules::momentum{.learning_rate = 0.01}, {.aggregation = reduce_op::mean}};

  strategy.run([=](replica_context& context) -> task<void> {
    auto number = std::to_string(context.replica_id_in_sync_group());
    auto inputs = random_values({batch, widths[0]}, 1, "inputs" + number);
    auto labels = zeros({batch}, dtype::i64);
    for (int64_t i = 0; i < batch; ++i)
      labels.mutable_values<int64_t>()[static_cast<size_t>(i)] = i % 1024;
    loss_function loss = [=](tape& on, std::span<const expression> parameters) {
      return model(on, parameters, inputs, labels);
    };
    for (int step = 0; step < steps; ++step) {
      auto begin = std::chrono::steady_clock::now();
      auto minimizing = momentum.minimize(context, loss, weights);
      co_await minimizing;
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (context.replica_id_in_sync_group() == 0) std::printf("%.9f\n", took.count());
    }
  });
}

} // namespace

int main(int count, char** arguments) {
  if (count < 4) return EXIT_FAILURE;
  try {
    take_part(static_cast<uint32_t>(std::atoi(arguments[1])), std::atoll(arguments[2]),
              std::atoi(arguments[3]));
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return EXIT_FAILURE;
  }
}
