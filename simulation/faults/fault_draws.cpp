// SPDX-License-Identifier: Apache-2.0
// Numbered draws for the purposes of faults.
#include "simulation/faults/fault_draws.hpp"

#include "simulation/network/end_of_time.hpp"

#include <algorithm>

namespace troupe {

random_stream fault_draws::stream(const char* purpose, uint32_t index) {
  return random_stream{random_key{seed_, purpose, index, counts_[{purpose, index}]++}};
}

job_time fault_draws::exponential(const char* purpose, uint32_t index, job_time mean) {
  return scaled(mean, stream(purpose, index).exponential());
}

job_time fault_draws::absence(uint32_t replica) {
  auto mean = rates_.return_mean;
  if (mean == job_time{0}) return mean;
  auto share = rates_.permanent;
  if (share > 0 && stream("permanent", replica).uniform() < share) return job_time{0};
  return std::max(job_time{1}, exponential("return", replica, mean));
}

} // namespace troupe
