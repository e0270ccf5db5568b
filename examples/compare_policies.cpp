// SPDX-License-Identifier: Apache-2.0
// How many of 16 replicas should a step wait for? The actors of a real job answer in virtual time.
#include "simulation/scenario.hpp"

#include <cstdio>
#include <cstdlib>

using namespace troupe;

namespace {

/// Mean seconds of a step in which replicas take a second on average, exponentially distributed.
double mean_step(uint32_t aggregate, sync_policy policy, uint32_t steps) {
  scenario job{.sync
               = {.replicas_to_aggregate = aggregate, .total_num_replicas = 16, .policy = policy},
               .steps = steps,
               .compute = exponential_time(std::chrono::seconds{1}, 1)};
  return simulate(job).mean_step_seconds(steps / 10); // the start is no steady state
}

} // namespace

// Usage: compare_policies [STEPS]. Prints a CSV table.
int main(int argument_count, char** arguments) {
  int steps = argument_count > 1 ? std::atoi(arguments[1]) : 5000;
  if (steps < 10) {
    std::fprintf(stderr, "usage: compare_policies [STEPS]   (10 or more)\n");
    return 2;
  }
  auto count = static_cast<uint32_t>(steps);
  std::printf("aggregate,cancel,latest_token,tensorflow\n");
  for (uint32_t aggregate = 8; aggregate <= 16; ++aggregate)
    std::printf("%u,%.4f,%.4f,%.4f\n", aggregate, mean_step(aggregate, sync_policy::cancel, count),
                mean_step(aggregate, sync_policy::latest_token, count),
                mean_step(aggregate, sync_policy::tensorflow, count));
}
