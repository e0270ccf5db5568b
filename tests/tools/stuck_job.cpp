// SPDX-License-Identifier: Apache-2.0
// A trainer with a gradient function that is wrong in one of several ways, to be run as a process.
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"

#include <chrono>
#include <string_view>
#include <thread>

using namespace troupe;

namespace {

tensor wrong_gradient(std::string_view how, bool is_last) {
  while (how == "endless" && is_last)
    std::this_thread::sleep_for(std::chrono::seconds{1});
  // Longer than the deadline, and than any world waits for it, on a busy machine, too.
  if (how == "slow" && is_last) std::this_thread::sleep_for(std::chrono::seconds{12});
  return zeros(how == "misshapen" ? shape{3} : shape{2});
}

} // namespace

int main(int count, char** arguments) {
  std::string_view how = count > 1 ? arguments[1] : "";
  job_report report;
  {
    auto world = world::threads({.threads = 2});
    parameter_server_strategy strategy{world, {.replicas = 2}};
    auto line = strategy.make_variable("line", zeros({2}));
    sync_replicas_optimizer optimizer{
      rules::sgd{.learning_rate = 0.1},
      {.replicas_to_aggregate = 2, .total_num_replicas = 2, .policy = sync_policy::latest_token}};
    auto step = [=](replica_context& context) -> task<void> {
      auto is_last = context.replica_id_in_sync_group() == 1;
      auto computing
        = context.compute([=](std::stop_token) { return wrong_gradient(how, is_last); });
      auto gradient = co_await computing;
      auto applying = optimizer.apply_gradients(context, gradient, line);
      co_await applying;
    };
    report = train(strategy, optimizer, step, {.steps = 5, .deadline = std::chrono::seconds{2}});
  }
  if (how == "slow") std::this_thread::sleep_for(std::chrono::seconds{9});
  return report.failure ? static_cast<int>(exit_code_of(report.failure->code)) : 0;
}
