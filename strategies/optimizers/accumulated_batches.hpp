// SPDX-License-Identifier: Apache-2.0
// Sums the gradients of several batches before they make one update.
#pragma once

#include "strategies/contexts/computed_gradients.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// Each replica, or worker, of each strategy sums the gradients of its own batches.
///
/// Thread: any; the batches of one replica come one after the other.
class accumulated_batches {
public:
  /// @param count Batches of one update; at least 1.
  explicit accumulated_batches(uint32_t count) : count_(count) {}

  /// The number of a strategy, and its replica or worker.
  using giver = std::pair<uint64_t, uint32_t>;

  /// Adds the gradients of a batch. @returns The sums, if the batch is the last of an update.
  /// @param failed_runs Runs that have failed so far. After another one, a replica begins again:
  /// the failed run may have left the replicas with different numbers of batches.
  /// Errors: throws `failure`: invalid_argument for a gradient that does not have the shape of its
  /// variable, or has rows without one number each; type_mismatch for one of another dtype, or of
  /// another kind, than that of the batches before. Then nothing is added.
  [[nodiscard]] std::optional<std::vector<gradient_and_variable>>
  add(const giver& by, std::vector<gradient_and_variable> gradients, uint64_t failed_runs = 0);

private:
  /// The batches of a replica since its last update.
  struct sums {
    uint32_t batches = 0;
    std::vector<gradient_and_variable> gradients;
    variable_positions positions; ///< In `gradients`.
    uint64_t failed_runs = 0;
  };

  [[nodiscard]] sums& sums_of(const giver& by);

  uint32_t count_;
  std::mutex mutex_; ///< Guards the map; its elements belong to one replica each.
  std::map<giver, sums> by_giver_;
};

} // namespace troupe
