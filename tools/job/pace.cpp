// SPDX-License-Identifier: Apache-2.0
// Draws computing times, and multiplies those of slow replicas.
#include "tools/job/pace.hpp"

#include "messages/errors/failure.hpp"
#include "simulation/distributions/distribution.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace troupe {

namespace {

// In the virtual world arithmetic takes no time; this stands for it.
constexpr job_time virtual_computing_time = std::chrono::milliseconds{100};

// The slowed time, at most the longest time that a distribution draws.
job_time slowed(job_time time, double factor) {
  constexpr std::chrono::duration<double, std::nano> longest = std::chrono::seconds{1'000'000'000};
  return std::chrono::duration_cast<job_time>(std::min(time * factor, longest));
}

} // namespace

std::function<job_time(uint32_t, uint64_t, job_time)> pace_of(const job_options& options) {
  std::vector<double> factors(options.replicas, 1.0);
  for (const auto& slow : options.slow)
    factors[slow.replica] = slow.factor;
  if (options.world == world_kind::threads)
    return [factors](uint32_t replica, uint64_t, job_time elapsed) {
      return slowed(elapsed, factors[replica] - 1);
    };
  auto times = options.compute.empty()
                 ? constant_time(virtual_computing_time)
                 : value_or_throw(distribution::parse(options.compute)).times(options.seed);
  return [factors, times](uint32_t replica, uint64_t iteration, job_time) {
    return slowed(times(replica, iteration), factors[replica]);
  };
}

} // namespace troupe
