// SPDX-License-Identifier: Apache-2.0
// How long each replica computes next.
#pragma once

#include "simulation/scenario.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Counts the computations of each replica, so that every engine draws the same times for them. A
/// replica that comes back goes on with the next of its draws.
class replica_draws {
public:
  /// @param what Outlives it.
  explicit replica_draws(const scenario& what)
    : what_(what), begun_(what.sync.total_num_replicas, 0) {}

  /// The replica begins to compute. @returns For how long: the first local step of a round begins
  /// with the averaging that ends the round before.
  [[nodiscard]] job_time next(uint32_t replica) {
    auto computation = begun_[replica]++;
    const auto& local = what_.local_sgd;
    auto time = what_.compute(replica, computation);
    auto ends_round = computation >= local.local_steps && computation % local.local_steps == 0;
    return ends_round ? time + local.averaging_time : time;
  }

private:
  const scenario& what_;
  std::vector<uint64_t> begun_; ///< By replica.
};

} // namespace troupe
