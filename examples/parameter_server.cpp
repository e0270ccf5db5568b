// SPDX-License-Identifier: Apache-2.0
// Asynchronous training: one process schedules steps, workers make them at their own pace, and
// parameter servers hold the variables. Every process runs this program.
//
//   parameter_server                                          two workers in one process
//   troupe launch -n 3 --ps 2 -- parameter_server             worker 0 schedules, and works
//   troupe launch -n 3 --ps 2 --chief -- parameter_server     the chief only schedules
#include "kernels/tensor/random.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/optimizers/optimizer.hpp"

#include <cstdio>
#include <vector>

using namespace troupe;

namespace {

// The line to be found: y = 3 x + 2.
constexpr float slope_sought = 3;
constexpr float intercept_sought = 2;
constexpr int steps_per_epoch = 100;

// Examples of the line, in another order for each worker.
dataset batches(const input_context& worker) {
  constexpr int examples = 256;
  std::vector<float> x(examples);
  std::vector<float> y(examples);
  random_stream random{{7, "examples", 0, 0}};
  for (int i = 0; i < examples; ++i) {
    x[i] = 2 * static_cast<float>(random.uniform()) - 1;
    y[i] = slope_sought * x[i] + intercept_sought;
  }
  return dataset::from_tensor_slices({make_tensor({examples}, x), make_tensor({examples}, y)})
    .shuffle(examples, worker.input_pipeline_id)
    .batch(16)
    .repeat();
}

struct step_result {
  double loss = 0;
  std::vector<tensor> gradients; ///< By slope and intercept.
};

// The mean squared error of a batch, and its gradients.
step_result differentiate(const tensor& slope, const tensor& intercept, const element& batch) {
  auto x = batch.tensors[0].values<float>();
  auto y = batch.tensors[1].values<float>();
  auto count = static_cast<float>(x.size());
  float loss = 0;
  float by_slope = 0;
  float by_intercept = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    auto missing = slope.values<float>()[0] * x[i] + intercept.values<float>()[0] - y[i];
    loss += missing * missing / count;
    by_slope += 2 * missing * x[i] / count;
    by_intercept += 2 * missing / count;
  }
  return {loss, {make_tensor({}, {by_slope}), make_tensor({}, {by_intercept})}};
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster, {.replicas = cluster.is_alone() ? 2U : 0U}};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto slope = strategy.make_variable("slope", zeros({}));
  auto intercept = strategy.make_variable("intercept", zeros({}));
  optimizer optimizer{rules::sgd{.learning_rate = 0.05}};

  // All processes make the same datasets and functions, in the same order.
  cluster_coordinator coordinator{strategy};
  auto data = coordinator.create_per_worker_dataset(batches);
  auto step = coordinator.make_function(
    "step", [=](closure_context& context, dataset_iterator& examples) -> task<double> {
      std::vector<variable> both{slope, intercept};
      auto reading = context.read(both);
      auto values = co_await reading;
      auto batch = value_or_throw(examples.next());
      auto computing = context.compute(
        [=](std::stop_token) { return differentiate(values[0], values[1], *batch); });
      auto result = co_await computing;
      std::vector<gradient_and_variable> pairs{{result.gradients[0], slope},
                                               {result.gradients[1], intercept}};
      auto applying = optimizer.apply_gradients(context, std::move(pairs));
      co_await applying;
      co_return result.loss;
    });
  if (!coordinator.leads()) {
    coordinator.serve();
    return 0;
  }

  auto iterator = data.iterator();
  double loss = 1;
  for (int epoch = 1; loss > 1e-6 && epoch <= 20; ++epoch) {
    std::vector<remote_value<double>> losses;
    for (int i = 0; i < steps_per_epoch; ++i)
      losses.push_back(coordinator.schedule(step, iterator));
    coordinator.join();
    loss = 0;
    for (auto step_loss : coordinator.fetch(losses))
      loss += step_loss / steps_per_epoch;
    std::printf("epoch %d: loss %.7f\n", epoch, loss);
  }
  std::printf("y = %.3f x + %.3f, found by %u workers in %zu processes\n",
              strategy.read(slope).values<float>()[0], strategy.read(intercept).values<float>()[0],
              coordinator.num_workers(), cluster.tasks.size());
  return loss <= 1e-6 ? 0 : 1;
}

} // namespace

int main() {
  return run_main(take_part, "parameter_server");
}
