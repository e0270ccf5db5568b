// SPDX-License-Identifier: Apache-2.0
// Computing times: constant, drawn, or those of a real run.
#include "simulation/distributions/computing_time.hpp"

#include "kernels/tensor/random.hpp"
#include "messages/errors/assert.hpp"

#include <utility>

namespace troupe {

computing_time constant_time(job_time time) {
  return [time](uint32_t, uint64_t) { return time; };
}

computing_time exponential_time(job_time mean, uint64_t seed) {
  return [mean, seed](uint32_t replica, uint64_t iteration) {
    random_stream stream{random_key{seed, "computing time", replica, iteration}};
    return job_time{static_cast<int64_t>(static_cast<double>(mean.count()) * stream.exponential())};
  };
}

computing_time replayed_times(std::vector<std::vector<job_time>> times) {
  job_time sum{0};
  int64_t count = 0;
  for (const auto& of_replica : times) {
    for (auto time : of_replica) {
      sum += time;
      ++count;
    }
  }
  TROUPE_ASSERT(count > 0);
  return [times = std::move(times), mean = sum / count](uint32_t replica, uint64_t iteration) {
    if (replica >= times.size() || times[replica].empty()) return mean;
    return times[replica][iteration % times[replica].size()];
  };
}

} // namespace troupe
