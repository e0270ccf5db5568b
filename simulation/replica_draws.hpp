// SPDX-License-Identifier: Apache-2.0
// The computing times of each replica, one after the other.
#pragma once

#include "simulation/scenario.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// Counts the computations of each replica, so that every engine draws the same times for them. A
/// replica that comes back goes on with the next of its draws.
class replica_draws {
public:
  /// @param scenario Outlives it.
  explicit replica_draws(const scenario& scenario)
    : scenario_(scenario), begun_(scenario.sync.total_num_replicas, 0),
      ahead_(scenario.compute.draws_ahead() ? begun_.size() : 0) {}

  /// The replica begins to compute. @returns For how long: the first local step of a round begins
  /// with the averaging that ends the round before.
  [[nodiscard]] job_time next(uint32_t replica) {
    auto computation = begun_[replica]++;
    const auto& local = scenario_.local_sgd;
    auto time = draw(replica, computation);
    auto ends_round = computation >= local.local_steps && computation % local.local_steps == 0;
    return ends_round ? time + local.averaging_time : time;
  }

  /// Brings what `next` needs into the cache, before it is asked for.
  void bring_near(uint32_t replica) const {
    __builtin_prefetch(&begun_[replica], 1);
    if (!ahead_.empty()) __builtin_prefetch(&ahead_[replica], 1);
  }

private:
  job_time draw(uint32_t replica, uint64_t computation) {
    if (ahead_.empty()) return scenario_.compute(replica, computation);
    auto place = computation % random_lanes;
    if (place == 0) ahead_[replica] = scenario_.compute.ahead(replica, computation);
    return ahead_[replica][place];
  }

  const scenario& scenario_;
  std::vector<uint64_t> begun_;              ///< By replica.
  std::vector<computing_time::block> ahead_; ///< By replica; empty: each is drawn alone.
};

} // namespace troupe
