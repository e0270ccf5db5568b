// SPDX-License-Identifier: Apache-2.0
// The variable owner: holds a variable and its slots, and applies each update in one pass.
#pragma once

#include "actors/gradient_check.hpp"
#include "actors/interfaces.hpp"
#include "actors/update_pass.hpp"
#include "actors/world.hpp"
#include "kernels/learning_rate.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <optional>

namespace troupe {

/// What an owner owns.
struct variable_owner_config {
  variable_form variable;
  tensor initial;                 ///< Never written to.
  troupe::world* world = nullptr; ///< Tells how long updates take. Outlives the actor.
};

/// Whoever reads a variable holds the owner's memory, without a copy, for as long as it likes; and
/// the owner must still be free to apply the next update. So an update writes the variable where it
/// lies if nobody looks, and into fresh memory if somebody does.
struct variable_owner_state {
  static inline const char* name = "variable_owner";

  variable_owner_config config;
  variable_state variable;
  std::optional<update_rule> rule;
  learning_rate_schedule schedule;
  msg<wire::VariableSnapshot> snapshot; ///< Of the current version; empty until somebody asks.

  /// The variable as it is now.
  [[nodiscard]] msg<wire::VariableSnapshot> read();

  /// Chooses what an update does; slots begin at 0, unless the optimizer is the same as before.
  /// Errors: as `to_rule`.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> use(const msg<wire::UseOptimizer>& optimizer);

  /// One update, as `update_variable` does it.
  /// Errors: failed_precondition, if no optimizer is in use; invalid_argument for no gradients;
  /// as `check_gradient`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply(const msg<wire::ApplyUpdate>& update);
};

/// The behaviour of a variable owner.
variable_owner_actor::behavior_type
variable_owner(variable_owner_actor::stateful_pointer<variable_owner_state> self,
               variable_owner_config config);

} // namespace troupe
