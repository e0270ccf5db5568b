// SPDX-License-Identifier: Apache-2.0
// A data-parallel step of a multilayer perceptron of 25 million parameters.
//
// data_parallel_step REPLICAS BATCH STEPS [MIB]   prints the seconds of each step, as `time_steps`
// says; MIB: gradients leave in buckets of this size while others are computed, not after all
#include "benchmarks/timed_steps.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/contexts/gradient_buckets.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <cmath>
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
    value = on.linear(value, parameters[layer], parameters[layer + 1]);
    if (layer + 2 < parameters.size()) value = on.relu(value);
  }
  return on.softmax_cross_entropy(value, labels);
}

/// The loss of a replica's batch, which is the same in each step.
loss_function make_loss(uint32_t replica, int64_t batch) {
  auto inputs = random_values({batch, widths[0]}, 1, "inputs" + std::to_string(replica));
  auto labels = zeros({batch}, dtype::i64);
  for (int64_t i = 0; i < batch; ++i)
    labels.mutable_values<int64_t>()[static_cast<size_t>(i)] = i % 1024;
  return [=](tape& on, std::span<const expression> parameters) {
    return model(on, parameters, inputs, labels);
  };
}

std::vector<variable> make_weights(strategy& strategy) {
  std::vector<variable> weights;
  for (size_t i = 0; i + 1 < std::size(widths); ++i) {
    auto name = std::to_string(i);
    auto scale = 1 / std::sqrt(static_cast<double>(widths[i]));
    weights.push_back(strategy.make_variable(
      "weights" + name, random_values({widths[i], widths[i + 1]}, scale, name)));
    weights.push_back(strategy.make_variable("bias" + name, zeros({widths[i + 1]})));
  }
  return weights;
}

/// @param variables Variables, or buckets of them.
template <class Variables>
step_function step_of(strategy& strategy, int64_t batch, Variables variables) {
  std::vector<loss_function> losses;
  for (uint32_t replica = 0; replica < strategy.num_replicas_in_sync(); ++replica)
    losses.push_back(make_loss(replica, batch));
  optimizer momentum{rules::momentum{.learning_rate = 0.01}, {.aggregation = reduce_op::mean}};
  return [=](replica_context& context) -> task<void> {
    auto minimizing
      = momentum.minimize(context, losses[context.replica_id_in_sync_group()], variables);
    co_await minimizing;
  };
}

} // namespace

int main(int count, char** arguments) {
  auto bucket_bytes = count < 5 ? 0 : std::strtoull(arguments[4], nullptr, 10) << 20;
  return time_steps(count, arguments, [=](strategy& strategy, int64_t batch) {
    auto weights = make_weights(strategy);
    if (bucket_bytes == 0) return step_of(strategy, batch, weights);
    return step_of(strategy, batch, gradient_buckets{strategy, weights, bucket_bytes});
  });
}
