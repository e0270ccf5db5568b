// SPDX-License-Identifier: Apache-2.0
// The worth of a backup replica, in several processes: the last replica is slow. First every step
// waits for all replicas, then for all but one.
//
//   troupe launch -n 4 --ps 1 -- backup_replicas_cluster
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <algorithm>
#include <cstdio>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// The results of a training.
struct outcome {
  job_report report;
  double seconds = 0;
  uint64_t dropped = 0; ///< Gradients that came too late.
};

outcome train_with(strategy& strategy, const variable& weights, uint32_t needed) {
  auto replicas = strategy.num_replicas_in_sync();
  sync_replicas_optimizer optimizer{rules::sgd{.learning_rate = 0.1},
                                    {needed, replicas, sync_policy::latest_token}};
  auto step = [=](replica_context& context) -> task<void> {
    auto reading = context.read(weights);
    auto values = co_await reading;
    auto computing = context.compute([values](std::stop_token) {
      auto gradient = zeros(values.extents());
      std::ranges::copy(values.values<float>(), gradient.mutable_values<float>().begin());
      return gradient;
    });
    auto gradient = co_await computing;
    std::vector<gradient_and_variable> pairs{{gradient, weights}};
    auto applying = optimizer.apply_gradients(context, std::move(pairs));
    co_await applying;
  };
  outcome result;
  training_options options{.steps = 60};
  options.pace = [last = replicas - 1](uint32_t replica, uint64_t, job_time) -> job_time {
    return replica == last ? 30ms : 3ms;
  };
  options.on_step = [&](const step_record& record) {
    result.seconds += std::chrono::duration<double>(record.ended - record.began).count();
    result.dropped += record.stale.size();
  };
  result.report = train(strategy, optimizer, step, options);
  return result;
}

int take_part() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  server server{world, cluster, {.replicas = cluster.is_alone() ? 4U : 0U}};
  parameter_server_strategy strategy{
    world, {.replicas = server.replicas(), .placement = server.placement()}};
  auto weights
    = strategy.make_variable("weights", make_tensor({1000}, std::vector<float>(1000, 1)));
  auto replicas = strategy.num_replicas_in_sync();
  for (auto needed : {replicas, replicas - 1}) {
    auto result = train_with(strategy, weights, std::max(1U, needed));
    if (result.report.failure) return static_cast<int>(exit_code_of(result.report));
    if (server.is_chief())
      std::printf("%u of %u gradients: %.1f ms a step, %llu gradients dropped\n", needed, replicas,
                  1e3 * result.seconds / 60, static_cast<unsigned long long>(result.dropped));
  }
  return 0;
}

} // namespace

int main() {
  return run_main(take_part);
}
