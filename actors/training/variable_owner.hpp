// SPDX-License-Identifier: Apache-2.0
// The variable owner: holds a variable and its slots, and applies each update in one pass.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/replication/change_log.hpp"
#include "actors/replication/request_session.hpp"
#include "actors/training/gradient_check.hpp"
#include "actors/training/variable_copies.hpp"
#include "actors/world/activity.hpp"
#include "actors/world/device_end.hpp"
#include "actors/world/phases.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
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

/// Whether a reader can look at memory of a device. The host's may be looked at anywhere.
[[nodiscard]] bool computes_at(wire::ReadVariable::Reader reader, device where);

/// A reader of a variable holds the owner's memory, without a copy, for as long as it likes; and
/// the owner must still be free to apply the next update. So an update writes the variable where it
/// lies if no reader holds it, and into fresh memory if one does.
///
/// Thread: one at a time; for a variable of a device, that of its stream, and what a method answers
/// holds once the stream has come past it. Errors: all methods have those of the device, too.
class owned_variable {
public:
  owned_variable() = default;

  /// @param place Where it lies, of `config.places`; the first one, if there is any.
  explicit owned_variable(const variable_owner_config& config, size_t place = 0);

  /// The variable, or a copy of it, as it is now: where it lies, if its reader computes on that
  /// device, else in the host's memory. Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>> read(const msg<wire::ReadVariable>& wanted);

  /// The variable as it is now, for a reader that computes where its value lies already; nothing,
  /// for others. Asks the device for nothing. Thread: any, while no other method runs.
  [[nodiscard]] std::optional<msg<wire::VariableSnapshot>>
  read_there(const msg<wire::ReadVariable>& wanted) const;

  /// Whether all of its copies are one.
  [[nodiscard]] bool is_one_array() const { return copies_.are_together(); }

  /// The variable as it is now, or its first copy, where it lies.
  [[nodiscard]] expected<tensor> value_in_place() { return copies_.read_in_place(0); }

  /// The changes since the variable had a revision. Errors: as `variable_copies::read`.
  [[nodiscard]] expected<msg<wire::VariableChanges>> pull(const msg<wire::PullVariable>& wanted);

  /// Changes the variable by hand; of a change that may be asked for again, once: one that was made
  /// is answered only. Errors: as `variable_copies::apply`; malformed; cancelled, for one that its
  /// asker has the answer to.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_once(const msg<wire::ChangeVariable>& wanted);

  /// The moving average of that name as it is now.
  /// Errors: not_found, if the owner keeps none or another.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  read_average(const msg<wire::ReadAverage>& wanted);

  /// Chooses the optimizer of updates; slots and average as `prepare` has it.
  /// Errors: as `to_plan`; failed_precondition for restored slots of other names.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> use(const msg<wire::UseOptimizer>& optimizer);

  /// One update, as `update_variable` does it; once, as `change_once`.
  /// Errors: failed_precondition, if no optimizer is in use; invalid_argument for no gradients;
  /// as `check_gradient`; user_code if a program's rule throws, which leaves a part of the update;
  /// cancelled, as `change_once`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply_once(const msg<wire::ApplyUpdate>& update);

  /// Gradients that were checked, where the variable lies, for one of the next two.
  /// Errors: as `apply_once`.
  [[nodiscard]] expected<std::vector<gradient>> placed(std::vector<gradient> gradients) const;

  /// One update; as `apply_once`, but it is neither measured nor held.
  [[nodiscard]] expected<void> update(const gradient_mean& mean) { return apply(mean); }

  /// The values by which such an update is measured.
  [[nodiscard]] measured_mean measured(const gradient_mean& mean) const {
    return {copies_.first(), mean};
  }

  /// The update that is held. Errors: failed_precondition if there is none.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> release(const msg<wire::ReleaseUpdate>& wanted);

  /// All there is to save.
  [[nodiscard]] expected<msg<wire::VariableState>> read_state(const msg<wire::ReadState>& wanted);

  /// Goes back to a saved state. Earlier snapshots show the same values as before.
  /// Errors: type_mismatch and invalid_argument if an array is not like the variable.
  [[nodiscard]] expected<msg<wire::OptimizerInUse>> restore(const msg<wire::RestoreState>& saved);

  /// Takes over the owner's state. Errors: as `restore`.
  [[nodiscard]] expected<msg<wire::UpdateApplied>> mirror_state(const msg<wire::MirrorState>& told);

  /// The state that the mirror is to have. @pre The variable lies in the host's memory.
  [[nodiscard]] msg<wire::MirrorState> told_state() const;

  /// The last update of the job; nothing, if the owner has no mirror.
  [[nodiscard]] const std::optional<closed_step>& closed() const { return closed_; }

  /// A change that was made and may be asked for again; null, if it was not made, or is over.
  [[nodiscard]] const made_change* made(const request_id& id) const { return made_.find(id); }

  /// The optimizer in use, and the update that is held; empty, if there is none.
  [[nodiscard]] const msg<wire::UseOptimizer>& optimizer() const { return optimizer_; }

  [[nodiscard]] const msg<wire::ApplyUpdate>& held() const { return held_.update; }

private:
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  change_by_hand(const msg<wire::ChangeVariable>& wanted);
  [[nodiscard]] expected<msg<wire::UpdateApplied>> apply(const msg<wire::ApplyUpdate>& update);

  /// An update that is measured and waits for its release; mostly empty.
  struct held_update {
    msg<wire::ApplyUpdate> update;
    std::vector<gradient> gradients; ///< Where they are applied.
  };

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
  [[nodiscard]] expected<void> restore(variable_payload from);
  [[nodiscard]] msg<wire::OptimizerInUse> in_use() const;

  variable_form form_;
  copy_rule rule_ = copy_rule::alike;
  troupe::world* world_ = nullptr;
  variable_copies copies_;
  msg<wire::VariableSnapshot> snapshot_; ///< Shows copies that are alike; empty until one is read.
  change_log log_;
  bool is_pulled_ = false; ///< A caller is told of changes only, so that rows are written down.
  bool changed_by_rows_ = false; ///< The last time.
  std::optional<update_plan> plan_;
  msg<wire::UseOptimizer> optimizer_; ///< The message with the plan; mostly for a mirror.
  held_update held_;
  request_table<made_change> made_; ///< The changes that may be asked for again.
  std::optional<closed_step> closed_;
};

/// A change that the mirror is told of, and the answer that waits for it.
struct told_change {
  std::function<void()> tell;
  std::function<void(const std::optional<error>& refused)> settle;
  std::optional<request_id> id{}; ///< It may be asked for again.
};

/// The changes that the mirror has not made yet: the first one is on its way to it.
class told_changes {
public:
  void add(told_change change);

  /// The mirror has made the first one. @pre There is one.
  void settle_first();

  /// The mirror makes none of them any more. @param refused Why their callers are refused.
  void settle_all(const std::optional<error>& refused = {});

  /// Forgets them. Their callers get no answer: they asked a former life.
  void forget() { changes_.clear(); }

  /// The one with that number; null: the mirror has made it.
  [[nodiscard]] told_change* find(const request_id& id);

  /// The last one that may be asked for again; null: there is none.
  [[nodiscard]] told_change* last_numbered();

private:
  std::deque<told_change> changes_;
};

/// An owner that has a mirror tells it of each change, one after the other, and answers the caller
/// that wanted the change when the mirror has made it: a change that a caller knows of is in two
/// places. It tells an update by its gradients or by their outcome, in whichever form has fewer
/// bytes. If a mirror cannot be reached, perhaps by this one only, the directory is told, which
/// sees to it that the mirror does not take over; only then the owner goes on without. A mirror
/// that has taken over refuses what its former owner says, so that an owner that was given up by
/// mistake cannot answer any caller.
///
/// A search for a variable may find its former owner's next life. So nothing is read of a mirror,
/// nor of an owner before its mirror has said that it repeats this one's changes.
///
/// A change that is asked for by way of a failover client has a number, since it may be asked for
/// again, of the mirror: the variable knows whether it was made. The mirror is told of it once,
/// however often it is asked for. A caller that reads the variable while the mirror does not know
/// of such a change waits until it does: so none has heard of a change that is lost with an owner,
/// and made once more later.
///
/// The owner of a variable on a device has nothing of that. It hands each request on to the
/// device's actor, which makes them one after the other. It answers when the device has done it;
/// but an update, and a read of a replica that computes there, when they are queued. Such a read it
/// answers by itself while the device has nothing else of it to do. If the variable is part of a
/// bundle, which asks that actor, too, it does not, and tells the bundle of each change by hand.
///
/// A variable with a copy on each of several devices is read where the reader computes, or on the
/// first, and changed on all. A change that some of them have refused, or bits that are not the
/// same when a checkpoint reads them, tear it: it refuses all but to be restored.
///
/// An owner or mirror that comes back in a new life is a mirror of the one that holds the variable
/// then, which tells it all there is between two changes: from then on it is like any other.
struct variable_owner_state {
  static inline const char* name = "variable_owner";

  enum class phase : uint8_t {
    holding,    ///< It holds the variable, as ever.
    unsure,     ///< It does, unless its mirror, when it answers, says that another does.
    mirroring,  ///< It repeats the changes of another.
    returning,  ///< It has a new life, and is to be told the changes that it missed.
    taken_over, ///< It holds the variable, of which it was the mirror.
    deposed,    ///< It has lost the variable to its mirror.
  };

  static constexpr std::array transitions{
    leads(phase::holding, phase::unsure, phase::deposed, phase::returning),
    leads(phase::unsure, phase::holding, phase::deposed, phase::returning),
    leads(phase::mirroring, phase::taken_over, phase::returning),
    leads(phase::returning, phase::mirroring, phase::returning),
    leads(phase::taken_over, phase::deposed, phase::returning),
    leads(phase::deposed, phase::deposed, phase::returning),
  };

  variable_owner_config config;
  std::shared_ptr<owned_variable> variable; ///< Shared with the device, if that works on it.
  /// Its copies on the devices behind the first one, which make the same changes.
  std::vector<std::shared_ptr<owned_variable>> elsewhere;
  phase_in<phase, transitions> now_in{phase::holding};
  std::vector<std::function<void()>> early; ///< Answers that wait while it is `unsure`.
  size_t at_device = 0;              ///< Requests that the device's actor has not answered yet.
  device_end end;                    ///< How the device's actor, or the first of them, has ended.
  std::optional<error> torn;         ///< Why its copies on devices are not one any more.
  std::vector<bundle_actor> bundles; ///< Bundles with the variable, one for each device.
  std::optional<come_back> returned; ///< While `returning`.
  replicated_owner_actor mirror;     ///< Null: there is none.
  uint32_t mirror_number = 0;        ///< Which one it is, as the directory counts them.
  /// How often it began to tell a mirror all: answers to an earlier telling are late.
  uint64_t telling = 0;
  told_changes changes;          ///< Changes that the mirror has not made yet.
  accumulator_actor accumulator; ///< Told the step that comes next when it takes over.
  uint64_t first_step = 0;       ///< The job's first step, as its accumulator has it.
  uint64_t clients = 0;          ///< Clients that have a number, where there is no directory.

  variable_owner_state() = default;

  explicit variable_owner_state(variable_owner_config from);

  /// Whether it holds the variable, as far as it knows.
  [[nodiscard]] bool holds() const {
    return now_in == phase::holding || now_in == phase::unsure || now_in == phase::taken_over;
  }

  /// Whether it repeats the changes of another.
  [[nodiscard]] bool repeats() const {
    return now_in == phase::mirroring || now_in == phase::returning;
  }

  /// Its variable at one of its places.
  [[nodiscard]] const std::shared_ptr<owned_variable>& at(size_t place) const {
    return place == 0 ? variable : elsewhere[place - 1];
  }

  /// Goes to another phase; requests that waited for certainty are answered.
  void enter(phase next);

  /// Its mirror repeats its changes, or takes over no more.
  void become_certain();

  /// A new life has known of no return yet, and has told the mirror what it began with.
  void become_newcomer(const come_back& told);
};

/// The behaviour of a variable owner, or of its mirror.
replicated_owner_actor::behavior_type
variable_owner(observed_pointer<replicated_owner_actor, variable_owner_state> self,
               variable_owner_config config);

} // namespace troupe
