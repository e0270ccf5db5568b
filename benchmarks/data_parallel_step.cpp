// SPDX-License-Identifier: Apache-2.0
// A data-parallel step of a multilayer perceptron of 25 million parameters.
//
// data_parallel_step REPLICAS BATCH STEPS   prints the seconds of each step
#include "kernels/random.hpp"
#include "strategies/mirrored_strategy.hpp"
#include "strategies/optimizer.hpp"

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

} // namespace

int main(int count, char** arguments) {
  if (count < 4) return EXIT_FAILURE;
  auto replicas = static_cast<uint32_t>(std::atoi(arguments[1]));
  auto batch = std::atoll(arguments[2]);
  auto steps = std::atoi(arguments[3]);
  auto in_process = world::threads();
  mirrored_strategy strategy{in_process, {.devices = cpu_devices(replicas)}};
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
