// SPDX-License-Identifier: Apache-2.0
// The variable owner: holds a variable and its slots, and applies each update in one pass.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/replication/change_log.hpp"
#include "actors/replication/made_changes.hpp"
#include "actors/training/gradient_check.hpp"
#include "actors/training/variable_copies.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// What an owner owns.
struct variable_owner_config {
  variable_form variable;
  tensor initial;                 ///< Never written to.
  troupe::world* world = nullptr; ///< Tells how long updates take. Outlives the actor.
  uint32_t copies = 1;            ///< One for each replica of this node.
  copy_rule rule = copy_rule::alike;
  uint32_t copies_elsewhere
    = 0; ///< Those of replicas of other processes, which are not known here.
  /// Of a mirror: the owner that it repeats, until it takes over; else null.
  replicated_owner_actor mirrored;
  directory_actor directory;   ///< Of an owner that is replicated; else null.
  uint32_t variable_index = 0; ///< The variable's position among those of the strategy.
};

/// A reader of a variable holds the owner's memory, without a copy, for as long as it likes; and
/// the owner must still be free to apply the next update. So an update writes the variable where it
/// lies if no reader holds it, and into fresh memory if one does.
///
/// An owner that has a mirror tells it of each change, one after the other, and answers the caller
/// that wanted the change when the mirror has made it: what a caller has been told is in two
/// places. Of an update it tells what is fewer bytes, the gradients or what has come of them. If a
/// mirror cannot be reached, perhaps by this one only, the directory is told, which sees to it that
/// the mirror does not take over; only then the owner goes on without. A mirror that has taken over
/// refuses what its former owner says, so that an owner that was given up by mistake cannot answer
/// any caller.
///
/// A search for a variable may find its former owner's next life. So nothing is read of a mirror,
/// nor of an owner before its mirror has said that it repeats this one's changes.
///
/// A change that is asked for by way of a stand-in has a number, since it may be asked for again,
/// of the mirror: `made_changes` tells whether it was made. A caller that reads the variable while
/// the mirror does not know of such a change waits until it does: so none has heard of a change
/// that is lost with an owner, and made once more later.
///
/// An owner or mirror that comes back in a new life is a mirror of the one that holds the variable
/// then, which tells it all there is between two changes: from then on it is like any other.
struct variable_owner_state {
  static inline const char* name = "variable_owner";

  variable_owner_config config;
  variable_copies copies;
  change_log log;
  bool is_pulled = false; ///< A caller is told of changes only, so that rows are written down.
  bool changed_by_rows = false; ///< The last time.
  std::optional<update_plan> plan;
  msg<wire::ApplyUpdate> held;          ///< Measured, and waiting for its release; mostly empty.
  msg<wire::VariableSnapshot> snapshot; ///< Of copies that are alike; empty until one is read.

  /// A change that the mirror is told of, and the answer that waits for it.
  struct told_change {
    std::function<void()> tell;
    std::function<void(const std::optional<error>& refused)> settle;
    bool is_numbered = false; ///< It may be asked for again.
  };

  replicated_owner_actor mirror;     ///< Null: there is none.
  uint32_t mirror_number = 0;        ///< Which one it is, as the directory counts them.
  made_changes made;                 ///< Those that may be asked for again.
  std::deque<told_change> changes;   ///< Not made by the mirror yet; the first one is on its way.
  std::optional<closed_step> closed; ///< The last update of the job; for owners with mirrors.
  msg<wire::UseOptimizer> optimizer; ///< The one in use; mostly for a mirror.
  bool has_taken_over = false;       ///< A mirror that holds the variable.
  accumulator_actor accumulator;     ///< Told the step that comes next when it takes over.
  uint64_t first_step = 0;           ///< Of the job, as its accumulator has it.
  bool is_deposed = false;           ///< An owner that lost the variable to its mirror.
  bool is_certain = true;            ///< Whether that is known: an owner hears it of its mirror.
  std::vector<std::function<void()>> early; ///< What is answered when it is certain.
  std::optional<come_back> returned; ///< Of one in a new life, until it is told what it missed.

  /// The variable, or a copy of it, as it is now. Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>> read(int32_t component);

  /// What has changed since the variable had that revision.
  /// Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableChanges>> pull(uint64_t known);

  /// Changes the variable by hand. Errors: as `variable_copies::apply`; malformed.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_by_hand(const msg<wire::ChangeVariable>& wanted);

  /// Likewise, but once: a change that was made is answered only. Errors: likewise; cancelled, for
  /// one that its asker has the answer to.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_once(const msg<wire::ChangeVariable>& wanted);

  /// The moving average of that name as it is now.
  /// Errors: not_found, if the owner keeps none or another.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>> read_average(const std::string& name);

  /// Chooses what an update does; slots and average as `prepare` has it.
  /// Errors: as `to_plan`; failed_precondition for restored slots of other names.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> use(const msg<wire::UseOptimizer>& optimizer);

  /// One update, as `update_variable` does it.
  /// Errors: failed_precondition, if no optimizer is in use; invalid_argument for no gradients;
  /// as `check_gradient`; user_code if a program's rule throws, which leaves a part of the update.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply(const msg<wire::ApplyUpdate>& update);

  /// Likewise, but once, as `change_once`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply_once(const msg<wire::ApplyUpdate>& update);

  /// The update that is held. Errors: failed_precondition if there is none.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> release(const msg<wire::ReleaseUpdate>& wanted);

  /// All there is to save.
  [[nodiscard]] msg<wire::VariableState> read_state() const;

  /// Goes back to what was saved. What `snapshot`s show stays as it is.
  /// Errors: type_mismatch and invalid_argument if an array is not like the variable.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> restore(const msg<wire::RestoreState>& saved);

  /// Whether it holds the variable, as far as it knows, and repeats no other's changes.
  [[nodiscard]] bool holds() const { return !is_deposed && (!config.mirrored || has_taken_over); }

  /// Takes over what the owner holds. Errors: as `restore`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> mirror_state(const msg<wire::MirrorState>& told);

  /// What the mirror is to know.
  [[nodiscard]] msg<wire::MirrorState> told_state() const;

private:
  [[nodiscard]] variable_payload saved() const;
  [[nodiscard]] expected<void> restore(variable_payload from);
  void keep_closed(wire::ApplyUpdate::Reader update, const applied_update& done);
  [[nodiscard]] expected<void> apply(const gradient_mean& mean);
  [[nodiscard]] double mean_squared_norm(std::span<const gradient> gradients) const;
  [[nodiscard]] applied_update timed(applied_update done, job_time began) const;
};

/// The behaviour of a variable owner, or of its mirror.
replicated_owner_actor::behavior_type
variable_owner(observed_pointer<replicated_owner_actor, variable_owner_state> self,
               variable_owner_config config);

} // namespace troupe
