// SPDX-License-Identifier: Apache-2.0
// The draws of faults that come by chance.
#pragma once

#include "kernels/tensor/random.hpp"
#include "simulation/faults/fault.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace troupe {

/// Draws the times of faults by their rates. The draws are those of a replica and its count of
/// faults, so that they are the same whatever else differs between two runs.
class fault_draws {
public:
  /// @param seed Names the draws.
  fault_draws(const fault_rates& rates, uint64_t seed) : rates_(rates), seed_(seed) {}

  [[nodiscard]] const fault_rates& rates() const { return rates_; }

  /// The next draws for a purpose. @param index A replica; 0 if the purpose is that of the job.
  [[nodiscard]] random_stream stream(const char* purpose, uint32_t index);

  /// An exponential time: the next draw for a purpose. @param index As in `stream`.
  [[nodiscard]] job_time exponential(const char* purpose, uint32_t index, job_time mean);

  /// How long a replica is away that crashes now, or is given up; 0 if it stays down, or if no time
  /// of return is drawn.
  [[nodiscard]] job_time absence(uint32_t replica);

private:
  fault_rates rates_;
  uint64_t seed_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> counts_; ///< By purpose and index.
};

} // namespace troupe
