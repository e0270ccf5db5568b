// SPDX-License-Identifier: Apache-2.0
// A step of synchronous training that computes nothing, in several processes: every replica reads
// all variables and pushes a gradient for each.
//
// troupe launch -n 4 --ps 2 -- parameter_server_step BYTES STEPS [HOLDERS]   the chief prints the
// seconds of each step; with 2 HOLDERS of each variable, owners are replicated. Any other way to
// start a cluster does as well.
#include "messages/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <vector>

using namespace troupe;

namespace {

constexpr int variables = 8;

int take_part(int64_t bytes, uint64_t steps, uint32_t holders) {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads({.observed = false});
  server server{world, cluster, {.replicate_owners = holders, .insecure_network = true}};
  parameter_server_strategy strategy{
    world,
    {.replicas = server.replicas(), .placement = server.placement(), .replicate_owners = holders}};
  auto elements = bytes / 4 / variables;
  for (int i = 0; i < variables; ++i)
    strategy.make_variable(fmt::format("v{}", i), zeros({elements}));
  std::vector<variable> all{strategy.variables().begin(), strategy.variables().end()};

  sync_replicas_optimizer optimizer{
    rules::sgd{.learning_rate = 0.1},
    {server.replicas(), server.replicas(), sync_policy::latest_token}};
  auto step = [=, gradient = zeros({elements})](replica_context& context) -> task<void> {
    auto reading = context.read(all);
    auto values = co_await reading;
    std::vector<gradient_and_variable> pairs;
    for (const auto& each : all)
      pairs.push_back({gradient, each});
    auto applying = optimizer.apply_gradients(context, std::move(pairs));
    co_await applying;
  };
  training_options options{.steps = steps};
  options.on_step = [](const step_record& record) {
    std::printf("%.9f\n", std::chrono::duration<double>(record.ended - record.began).count());
  };
  auto report = train(strategy, optimizer, step, options);
  if (report.failure) std::fprintf(stderr, "%s\n", report.failure->message.c_str());
  return report.failure ? EXIT_FAILURE : EXIT_SUCCESS;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 4) return EXIT_FAILURE;
  auto holders = count == 4 ? static_cast<uint32_t>(std::atoi(arguments[3])) : 1;
  try {
    return take_part(std::atoll(arguments[1]), static_cast<uint64_t>(std::atoll(arguments[2])),
                     holders);
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return EXIT_FAILURE;
  }
}
