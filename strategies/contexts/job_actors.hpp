// SPDX-License-Identifier: Apache-2.0
// The actors that a replica talks to during one job.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "actors/policies/asynchronous_rule.hpp"
#include "strategies/values/variable.hpp"

#include <caf/actor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Variables that lie together on a device: a replica reads them, and gives gradients for them, at
/// once.
struct bundle_of_variables {
  bundle_actor holder;
  device where{};                       ///< The device that they lie on.
  bundle_accumulator_actor collector{}; ///< Their only accumulator; null where replicas meet.
  std::vector<size_t> variables;        ///< Positions in the job, or in the strategy; rising.
};

/// The actors of one training job, as its replicas know them. Each optimizer in each job has
/// its own, so two of them in one program never meet.
struct job_actors {
  uint64_t first_step = 0;                       ///< Updates that the variables include already.
  std::optional<asynchronous_rule> asynchronous; ///< Set if training is asynchronous.
  token_queue_actor tokens;
  std::vector<variable> variables;             ///< The variables that the job trains.
  variable_positions positions;                ///< Positions in `variables`.
  std::vector<accumulator_actor> accumulators; ///< One for each of `variables`, in that order.
  std::vector<bundle_of_variables> bundles;    ///< Bundles of at least 2 variables each.
  /// Failover clients, one for each of `variables`; empty: owners are not replicated.
  std::vector<variable_owner_actor> owners;
  std::shared_ptr<const void> failover_clients; ///< They end with the last reference; may be null.
  std::vector<caf::actor> here;                 ///< Its actors in this process, to be ended.
  job_time ask_again_after{0};                  ///< As in `training_options`.
  /// The greatest step that a token of this process was for; null: not recorded.
  std::shared_ptr<std::atomic<uint64_t>> step_heard;

  /// Ends its actors that stand here, if there is no chief to do so.
  void end() const;

  /// Writes down that there is a token for `step`.
  void hear(uint64_t step) const;

  /// The same as the actor with the name `viewer` knows them. Errors: throws `failure`, as
  /// `placement::see`.
  [[nodiscard]] job_actors seen_from(const std::string& viewer, placement& placement) const;

  /// The position of a variable. Errors: not_found, naming it, if the job does not train it.
  [[nodiscard]] expected<size_t> position_of(const variable& trained) const;

  /// The bundle that holds a variable; null: none does. @param position The variable's position.
  [[nodiscard]] const bundle_of_variables* bundle_of(size_t position) const;

  /// The owner of a variable.
  [[nodiscard]] const variable_owner_actor& owner_of(const variable& trained) const;

  /// The accumulator of a variable. Errors: not_found, naming it, if the job does not train it.
  [[nodiscard]] expected<accumulator_actor> accumulator_of(const variable& trained) const;
};

} // namespace troupe
