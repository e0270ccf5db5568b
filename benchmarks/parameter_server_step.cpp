// SPDX-License-Identifier: Apache-2.0
// A step of synchronous training that computes nothing, in several processes: every replica reads
// all variables and pushes a gradient for each.
//
// troupe launch -n 4 --ps 2 -- parameter_server_step BYTES STEPS [HOLDERS [REPLICAS PERIOD]]
//
// The chief prints the seconds of each step. With 2 HOLDERS of each variable, owners are
// replicated. REPLICAS is the number of the job's replicas; 0: one for each worker. With a PERIOD
// in seconds, the chief's process observes the others in such intervals. Any other way to start a
// cluster works, too.
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <vector>

using namespace troupe;

namespace {

constexpr int variables = 8;

struct step_job {
  int64_t bytes = 0; ///< Bytes of all variables.
  uint64_t steps = 0;
  uint32_t holders = 1;
  uint32_t replicas = 0;
  std::optional<job_time> observe_period; ///< Nothing: actors are not observed at all.
};

int take_part(const step_job& job) {
  auto holders = job.holders;
  auto cluster = resolve({}, process_environment());
  auto world = world::threads({.observed = job.observe_period.has_value()});
  server server{world,
                cluster,
                {.replicas = job.replicas, .replicate_owners = holders, .insecure_network = true}};
  parameter_server_strategy strategy{
    world,
    {.replicas = server.replicas(), .placement = server.placement(), .replicate_owners = holders}};
  auto elements = job.bytes / 4 / variables;
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
  training_options options{.steps = job.steps};
  options.observe_period = job.observe_period.value_or(job_time{0});
  options.on_step = [](const step_record& record) {
    std::printf("%.9f\n", std::chrono::duration<double>(record.ended - record.began).count());
  };
  auto report = train(strategy, optimizer, step, options);
  if (report.failure) std::fprintf(stderr, "%s\n", report.failure->message.c_str());
  return report.failure ? EXIT_FAILURE : EXIT_SUCCESS;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 3 && count != 4 && count != 6) return EXIT_FAILURE;
  step_job job{.bytes = std::atoll(arguments[1]),
               .steps = static_cast<uint64_t>(std::atoll(arguments[2]))};
  if (count > 3) job.holders = static_cast<uint32_t>(std::atoi(arguments[3]));
  if (count > 4) {
    job.replicas = static_cast<uint32_t>(std::atoi(arguments[4]));
    job.observe_period = std::chrono::duration_cast<job_time>(
      std::chrono::duration<double>{std::atof(arguments[5])});
  }
  try {
    return take_part(job);
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return EXIT_FAILURE;
  }
}
