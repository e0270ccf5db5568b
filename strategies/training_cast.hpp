// SPDX-License-Identifier: Apache-2.0
// Whom a replica talks to during one job.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "strategies/variable.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The actors of one training job, as its replicas know them. Each optimizer in each job has a cast
/// of its own, so two of them in one program never meet.
struct training_cast {
  uint64_t first_step = 0; ///< Updates that the variables include already.
  token_queue_actor tokens;
  std::vector<variable> variables;             ///< What the job trains.
  std::vector<accumulator_actor> accumulators; ///< One for each of `variables`, in that order.
  std::vector<variable_owner_actor> owners; ///< Likewise, where they are not those of `variables`.

  /// Ends its actors, if there is no chief to do so.
  void end() const;

  /// The cast as whoever goes by the name `viewer` knows it.
  [[nodiscard]] training_cast seen_from(const std::string& viewer, placement& placement) const;

  /// The owner of a variable.
  [[nodiscard]] const variable_owner_actor& owner_of(const variable& trained) const;

  /// The accumulator of a variable. Errors: not_found, naming it, if the job does not train it.
  [[nodiscard]] expected<accumulator_actor> accumulator_of(const variable& trained) const;
};

} // namespace troupe
