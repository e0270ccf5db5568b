// SPDX-License-Identifier: Apache-2.0
// A variable as its owner holds it: the array, its slots, and the updates of both in one pass.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/replication/change_log.hpp"
#include "actors/replication/request_session.hpp"
#include "actors/training/gradient_check.hpp"
#include "actors/training/variable_copies.hpp"
#include "actors/world/activity.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// The variable that an owner holds, and where.
struct variable_owner_config {
  variable_form variable;
  tensor initial;                 ///< Never written to.
  troupe::world* world = nullptr; ///< Tells how long updates take. Outlives the actor.
  uint32_t copies = 1;            ///< One for each replica of this node.
  copy_rule rule = copy_rule::alike;
  /// Copies for replicas of other processes, which are not known here.
  uint32_t copies_elsewhere = 0;
  /// The owner whose changes a mirror repeats, until it takes over; null, if this is no mirror.
  replicated_owner_actor mirrored;
  directory_actor directory;   ///< Null, if the owner is not replicated.
  uint32_t variable_index = 0; ///< The variable's position among those of the strategy.
  /// Where the variable lies and is updated, on a device each; none: in the host's memory. One with
  /// a place has no mirror.
  std::vector<processor> places{};
};

/// Whether a reader computes on that device, and so can read its memory. False for the host, whose
/// memory every reader can read.
[[nodiscard]] bool computes_at(wire::ReadVariable::Reader reader, device where);

/// A reader of a variable holds the owner's memory, without a copy, for as long as it likes; and
/// the owner must still be free to apply the next update. So an update writes the variable where it
/// lies if no reader holds it, and into fresh memory if one does.
///
/// Thread: one at a time; for a variable of a device, that of its stream. The answer of a method
/// holds once the stream has done the method's work. Errors: all methods have those of the device,
/// too.
class owned_variable {
public:
  owned_variable() = default;

  /// @param place Where it lies, of `config.places`; the first one, if there is any.
  explicit owned_variable(const variable_owner_config& config, size_t place = 0);

  /// The variable, or a copy of it, as it is now: where it lies, if its reader computes on that
  /// device, else in the host's memory. Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>> read(const msg<wire::ReadVariable>& request);

  /// The variable as it is now, for a reader that computes where its value lies already; nothing,
  /// for others. Asks the device for nothing. Thread: any, while no other method runs.
  [[nodiscard]] std::optional<msg<wire::VariableSnapshot>>
  read_there(const msg<wire::ReadVariable>& request) const;

  /// Whether all of its copies are one.
  [[nodiscard]] bool is_one_array() const { return copies_.are_together(); }

  /// The variable as it is now, or its first copy, where it lies.
  [[nodiscard]] expected<tensor> value_in_place() { return copies_.read_in_place(0); }

  /// The changes since the variable had a revision. Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableChanges>> pull(const msg<wire::PullVariable>& request);

  /// Changes the variable by hand. A repeated request, by its number, is answered and not made
  /// again. Errors: as `variable_copies::apply`; malformed; cancelled, for a repeated request that
  /// was answered before, or long ago.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_once(const msg<wire::ChangeVariable>& request);

  /// The moving average of that name as it is now.
  /// Errors: not_found, if the owner keeps none or another.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  read_average(const msg<wire::ReadAverage>& request);

  /// Chooses the optimizer of updates; slots and average as `prepare` has it. If it is refused, or
  /// only asked about, nothing changes.
  /// Errors: as `to_plan`; type_mismatch for a variable of integers; unimplemented for an average
  /// of a variable that is synchronised on read; failed_precondition for restored slots of other
  /// names; user_code if a program's rule throws.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> use(const msg<wire::UseOptimizer>& optimizer);

  /// Chooses the optimizer that an update names, unless it is in use. Errors: as `use`.
  [[nodiscard]] expected<void> use_named(wire::UseOptimizer::Reader optimizer);

  /// One update, as `update_variable` does it, by the optimizer that it names, or else by the one
  /// in use; once, as `change_once`. Without gradients it changes no value, and not even the
  /// version. Errors: failed_precondition, if no optimizer is in use, or for restored slots of
  /// other names; as `use`; as `check_gradient`; user_code if a program's rule throws, which leaves
  /// a part of the update; cancelled, as `change_once`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply_once(const msg<wire::ApplyUpdate>& update);

  /// Gradients that were checked, brought to the variable, for `update` or `measured`.
  /// Errors: as `apply_once`.
  [[nodiscard]] expected<std::vector<gradient>> placed(std::vector<gradient> gradients) const;

  /// One update; as `apply_once`, but it is neither measured nor held.
  [[nodiscard]] expected<void> update(const gradient_mean& mean) { return apply(mean); }

  /// The first copy and the mean gradient, by which an update is measured.
  [[nodiscard]] measured_mean measured(const gradient_mean& mean) const {
    return {copies_.first(), mean};
  }

  /// The update that is held. Errors: failed_precondition if there is none.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> release(const msg<wire::ReleaseUpdate>& request);

  /// All there is to save.
  [[nodiscard]] expected<msg<wire::VariableState>> read_state(const msg<wire::ReadState>& request);

  /// Goes back to a saved state, and forgets an update that is held. The next update makes the
  /// slots and the average that the optimizer in use lacks then, as `use` does. Earlier snapshots
  /// show the same values as before. Errors: type_mismatch and invalid_argument if an array is not
  /// like the variable.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> restore(const msg<wire::RestoreState>& saved);

  /// Takes over the owner's state. Errors: as `restore`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> mirror_state(const msg<wire::MirrorState>& from);

  /// The state that the mirror is to have. @pre The variable lies in the host's memory.
  [[nodiscard]] msg<wire::MirrorState> state_for_mirror() const;

  /// The last update of the job; nothing, if the owner has no mirror.
  [[nodiscard]] const std::optional<closed_step>& closed() const { return closed_; }

  /// A change that was made and may be asked for again; null, if it was not made, or is over.
  [[nodiscard]] const made_change* made(const request_id& id) const { return made_.find(id); }

  /// The optimizer in use; empty, if there is none.
  [[nodiscard]] const msg<wire::UseOptimizer>& optimizer() const { return optimizer_; }

  /// The update that is held; empty, if there is none.
  [[nodiscard]] const msg<wire::ApplyUpdate>& held() const { return held_.update; }

private:
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_by_hand(const msg<wire::ChangeVariable>& request);
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply(const msg<wire::ApplyUpdate>& update);

  /// An update that is measured and waits for its release; mostly empty.
  struct held_update {
    msg<wire::ApplyUpdate> update;
    std::vector<gradient> gradients; ///< Where they are applied.
  };

  [[nodiscard]] expected<update_plan> plan_of(wire::UseOptimizer::Reader optimizer) const;
  [[nodiscard]] expected<variable_copies> prepared(const update_plan& plan);
  void take(variable_copies prepared);
  [[nodiscard]] expected<void> use_optimizer_of(wire::ApplyUpdate::Reader update);
  [[nodiscard]] expected<void> check_ready() const;
  [[nodiscard]] expected<std::vector<gradient>>
  gradients_of(const msg<wire::ApplyUpdate>& update) const;
  [[nodiscard]] expected<void> measure(const msg<wire::ApplyUpdate>& update,
                                       const gradient_mean& mean, applied_update& done) const;
  [[nodiscard]] expected<void> apply(const gradient_mean& mean);
  [[nodiscard]] expected<double> mean_squared_norm(std::span<const gradient> gradients) const;
  [[nodiscard]] applied_update timed(applied_update done, job_time began) const;
  void keep_closed(wire::ApplyUpdate::Reader update, const applied_update& done);
  [[nodiscard]] expected<variable_payload> saved() const;
  [[nodiscard]] expected<void> restore(const variable_payload& from);
  [[nodiscard]] msg<wire::OptimizerInUse> in_use() const;

  variable_form form_;
  copy_rule rule_ = copy_rule::alike;
  troupe::world* world_ = nullptr;
  variable_copies copies_;
  msg<wire::VariableSnapshot> snapshot_; ///< Shows copies that are alike; empty until one is read.
  change_log log_;
  bool is_pulled_ = false;       ///< A cache pulls changes, so that changed rows are logged.
  bool changed_by_rows_ = false; ///< The last change was one of rows.
  bool is_restored_ = false;     ///< Since the last `prepare`.
  std::optional<update_plan> plan_;
  msg<wire::UseOptimizer> optimizer_; ///< The message with the plan; mostly for a mirror.
  held_update held_;
  request_table<made_change> made_; ///< The changes that may be asked for again.
  std::optional<closed_step> closed_;
};

} // namespace troupe
