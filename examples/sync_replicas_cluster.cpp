// SPDX-License-Identifier: Apache-2.0
// One job in several processes: every one runs this program, and takes the part that its launcher
// gives it. Chief, owners of variables and replicas stand in different ones.
//
//   troupe launch -n 4 --ps 2 -- sync_replicas_cluster
//   mpirun -n 4 sync_replicas_cluster
//   torchrun --no_python --nproc_per_node 4 sync_replicas_cluster
//   TF_CONFIG='{"cluster": {...}, "task": {...}}' sync_replicas_cluster     once for each task
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdio>

using namespace troupe;

namespace {

// The line to be found: y = 3 x + 2.
constexpr float slope_sought = 3;
constexpr float intercept_sought = 2;

// The gradients of the mean squared error over a batch of the replica's own.
std::vector<tensor> differentiate(const tensor& slope, const tensor& intercept, random_key key) {
  constexpr int batch = 16;
  random_stream random{key};
  float by_slope = 0;
  float by_intercept = 0;
  for (int i = 0; i < batch; ++i) {
    auto x = 2 * static_cast<float>(random.uniform()) - 1;
    auto missing = slope.values<float>()[0] * x + intercept.values<float>()[0]
                   - (slope_sought * x + intercept_sought);
    by_slope += 2 * missing * x / batch;
    by_intercept += 2 * missing / batch;
  }
  return {make_tensor({}, {by_slope}), make_tensor({}, {by_intercept})};
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto slope = strategy.make_variable("slope", zeros({}));
  auto intercept = strategy.make_variable("intercept", zeros({}));

  sync_replicas_optimizer optimizer{
    rules::sgd{.learning_rate = 0.3},
    {server.replicas(), server.replicas(), sync_policy::latest_token}};
  auto step = [=](replica_context& context) -> task<void> {
    std::vector<variable> both{slope, intercept};
    auto reading = context.read(both);
    auto values = co_await reading;
    auto key = context.random("batch");
    auto computing
      = context.compute([=](std::stop_token) { return differentiate(values[0], values[1], key); });
    auto gradients = co_await computing;
    std::vector<gradient_and_variable> pairs{{gradients[0], slope}, {gradients[1], intercept}};
    auto applying = optimizer.apply_gradients(context, std::move(pairs));
    co_await applying;
  };
  auto report = train(strategy, optimizer, step, {.steps = 100});

  if (report.failure) return static_cast<int>(exit_code_of(report));
  if (server.is_chief())
    std::printf("y = %.3f x + %.3f, found by %u replicas in %zu processes\n",
                strategy.read(slope).values<float>()[0],
                strategy.read(intercept).values<float>()[0], server.replicas(),
                cluster.tasks.size());
  return 0;
}

} // namespace

int main() {
  return run_main(take_part);
}
