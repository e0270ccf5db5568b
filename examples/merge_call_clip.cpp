// SPDX-License-Identifier: Apache-2.0
// A merge function of one's own: gradients of all replicas are clipped by their common norm.
#include "strategies/kinds/mirrored_strategy.hpp"

#include <cmath>
#include <cstdio>

using namespace troupe;

namespace {

double norm_of(const tensor& values) {
  double squares = 0;
  for (auto value : values.values<float>())
    squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// Runs once for all replicas: the mean gradient, no longer than 1, is taken from every copy.
task<double> clip_and_apply(cross_replica_context& context, variable weights,
                            distributed_value<tensor> gradients) {
  auto reducing = context.reduce_to(reduce_op::mean, gradients, weights);
  auto mean = co_await reducing;
  auto norm = norm_of(mean.primary());
  auto factor = static_cast<float>(norm > 1 ? 1 / norm : 1);
  auto step = mean.primary().clone();
  for (auto& value : step.mutable_values<float>())
    value *= factor;
  auto applying = context.assign_sub(weights, step);
  co_await applying;
  co_return norm;
}

} // namespace

int main() {
  auto world = world::threads();
  mirrored_strategy strategy{world, {.devices = cpu_devices(3)}};
  auto weights = strategy.make_variable("weights", zeros({2}));

  for (int number = 0; number < 5; ++number) {
    auto norms = strategy.run([=](replica_context& context) -> task<double> {
      auto reading = context.read(weights);
      auto value = co_await reading;
      // Replica r wants the weights to be (r, 10).
      auto own = static_cast<float>(context.replica_id_in_sync_group());
      auto now = value.values<float>();
      auto gradient = make_tensor({2}, {now[0] - own, now[1] - 10});
      auto merging = context.merge_call(clip_and_apply, weights, gradient);
      auto norm = co_await merging;
      co_return norm;
    });
    auto now = strategy.read(weights);
    std::printf("gradient of norm %.2f: the weights are (%.2f, %.2f)\n", norms.primary(),
                now.values<float>()[0], now.values<float>()[1]);
  }
}
