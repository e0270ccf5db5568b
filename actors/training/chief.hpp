// SPDX-License-Identifier: Apache-2.0
// The chief: closes steps, hands out tokens, knows what is alive, and ends the job.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/backup_choice.hpp"
#include "actors/policies/sync_options.hpp"
#include "actors/training/replica_roster.hpp"
#include "actors/training/step_ledger.hpp"
#include "actors/world/phases.hpp"
#include "actors/world/world.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Whether a job with these options may go on after a replica was lost: the others give what a step
/// needs, each once or several times.
/// @param min_replicas As `chief_config::min_replicas`.
[[nodiscard]] bool may_lose_replicas(const sync_options& sync, uint32_t min_replicas = 0);

/// Variables of one accumulator.
struct collected_variables {
  std::string name; ///< For people: "w", or "w and 3 more".
  accumulator_actor accumulator;
  update_holder_actor holder;    ///< Makes the updates.
  std::vector<size_t> positions; ///< Positions of the variables, among all.
};

/// The job that a chief leads.
struct chief_config {
  sync_options sync;
  /// Replicas that are not there when the job begins: none waits for them, but they may join later.
  std::vector<uint32_t> absent;
  /// Replicas without which the job does not go on, even if a step needs fewer; 0: as a step needs.
  uint32_t min_replicas = 0;
  uint64_t first_step = 0;
  uint64_t steps = 1;                         ///< Updates to make.
  std::vector<collected_variables> collected; ///< To be trained; the chief ends the accumulators.
  std::vector<variable_owner_actor> owners;   ///< Variables in snapshots, the trained ones first.
  std::vector<std::string> variables;         ///< Their names, in the same order.
  token_queue_actor tokens;                   ///< The chief ends it.
  recorder_actor recorder;                    ///< Told of every step, and last of the job's end.
  /// A step that takes longer ends the job, naming what is missing. A sixth of it brings a warning.
  job_time deadline = std::chrono::minutes{10};
  /// How often the chief looks for what is missing. In the virtual world, where a look costs more
  /// than the time between two of them, less often the longer nothing happens: no deadline is
  /// missed.
  job_time watch_period = std::chrono::milliseconds{500};
  /// How long replicas may take to leave when the job is over.
  job_time leave_deadline = std::chrono::seconds{30};
  std::function<void(const std::string&)> on_warning; ///< May be empty.
  /// Told of a lost replica, and why the job ends badly, while all others are still as they were.
  /// May be empty.
  std::function<void(const std::string&)> on_trouble;
  /// Told of the step that is under way: when it begins, and whenever a replica comes or goes. May
  /// be empty.
  std::function<void(const open_step&)> on_open_step;
  /// Whether a snapshot is to be taken after so many updates, the job's last or not; empty: never.
  std::function<bool(uint64_t step, bool last)> wants_snapshot;
  /// How long a job that is asked to end may go on to the end of its step; then the step is taken
  /// back, and a last snapshot is of the one before.
  job_time stop_timeout = std::chrono::seconds{5};
  /// Whether the job goes on from a snapshot: then the next thing it does is hand out tokens.
  bool resumes = false;
  /// How long a replica of a lost node is expected back, before the job goes on, or ends, without
  /// it. If it comes later, while the job goes on, it takes part again.
  job_time rejoin_timeout{0};
  /// Whether the loss of a replica ends the job, with a last snapshot, however many are left.
  bool stops_on_loss = false;
  /// The factor of the mean gradient in an update, if an update does nothing else; otherwise 0. It
  /// says how curved the loss is, where the number of backups is dynamic.
  double learning_rate = 0;
  /// The estimates that a job goes on from, where the number of backups is dynamic.
  backup_estimates backups;
  troupe::world* world = nullptr; ///< Outlives the actor.
};

/// How far an accumulator has come.
struct accumulator_progress {
  uint64_t step = 0;      ///< The step that it collects for.
  uint64_t gradients = 0; ///< The gradients that it has for this step and later ones.
};

/// The step that is under way.
struct step_progress {
  uint32_t needed = 0; ///< Gradients that it waits for.
  job_time began{0};
  std::vector<variable_update> applied; ///< Updates that owners have made.
  size_t held = 0; ///< Updates that wait for their release: one an accumulator.
  std::map<size_t, gradient_norms> norms; ///< As owners hold or have measured them, by variable.
  size_t cancelled = 0;        ///< Accumulators that wait no more, while it is taken back.
  bool warned = false;         ///< The user was warned that it is late.
  bool suspects_stall = false; ///< The last look found all replicas waiting.

  /// Accumulators of variables that the step has changed, or that have a change held for them.
  [[nodiscard]] size_t ahead() const { return std::max(applied.size(), held); }

  /// The sum of the norms that owners have measured, in the order of variables.
  [[nodiscard]] gradient_norms all_norms() const;

  /// Names of the collected variables with an update that is not reported as applied yet.
  [[nodiscard]] std::vector<std::string>
  not_applied(std::span<const collected_variables> collected) const;
};

/// A snapshot that is being taken.
struct snapshot_progress {
  job_snapshot taken;
  size_t missing = 0;         ///< Answers that it still waits for.
  bool is_taken_back = false; ///< The step after it was: no replica has had a token of that.
};

/// When, and why, a job is to end, and its report.
struct job_end {
  std::optional<job_time> asked; ///< Since when the job is to end with its step.
  std::optional<error> reason;   ///< Why the job fails, if it is to end for a failure.
  bool asks_queue = false;       ///< The queue's answer is awaited: the job is not over.
  job_report report;

  /// The job is to end with its step.
  void ask(job_time now) { asked = asked.value_or(now); }
};

/// The chief's knowledge of its job. It goes through the phases that `transitions` allows.
///
/// A failure leads to `ending` at any time, StopJob at the end of the step. A step settles, and is
/// saved, in no virtual time: the steps do not show which of them were saved. If the job is to end
/// with a step, and the step does not end, it is taken back: no accumulator waits for it any more,
/// and the gradients that they hold are given up.
struct chief_state {
  static inline const char* name = "chief";

  enum class phase : uint8_t {
    starting,
    collecting,  ///< Until every accumulator has closed the step.
    taking_back, ///< Until every accumulator has given the step up.
    applying,    ///< Until every owner has applied the update.
    settling,    ///< Until all that was due at the moment is done.
    saving,      ///< Until all actors have given their parts of a snapshot.
    ending,      ///< Until every replica has come and left, or the deadline.
    over,
  };

  static constexpr std::array transitions{
    leads(phase::starting, phase::collecting, phase::settling), // settling: from a snapshot
    leads(phase::collecting, phase::taking_back, phase::applying, phase::ending),
    leads(phase::taking_back, phase::applying, phase::saving, phase::ending), // applying: too late
    leads(phase::applying, phase::settling, phase::ending),
    leads(phase::settling, phase::saving, phase::collecting, phase::ending),
    leads(phase::saving, phase::collecting, phase::ending),
    leads(phase::ending, phase::over),
  };

  chief_config config;
  phase_in<phase, transitions> now_in{phase::starting};
  job_time phase_began{0}; ///< When `settling`, `saving` or `ending` began.
  uint64_t step = 0;       ///< The global step: updates that are done.
  step_progress open;      ///< The step after it.
  step_ledger ledger{0};
  std::optional<backup_choice> choice; ///< If the number of backups is dynamic.
  replica_roster roster;
  std::vector<replica_actor> handles; ///< By replica; null unless it is live.
  bool has_lost_owners = false;       ///< The job goes on with their mirrors.
  snapshot_progress saving;
  std::set<job_time> planned_looks; ///< When the watch will look for what is missing.
  job_end end;

  chief_state() = default;

  /// Nothing has begun. @param from Each of its variables is collected once.
  explicit chief_state(chief_config from);

  /// True if no step comes after the one that is closed.
  [[nodiscard]] bool is_last() const {
    return step == config.first_step + config.steps || end.asked;
  }

  /// True while steps are made: before the job's end.
  [[nodiscard]] bool is_training() const { return now_in < phase::ending; }

  /// True while an accumulator may still close the step.
  [[nodiscard]] bool is_collecting() const {
    return now_in == phase::collecting || now_in == phase::taking_back;
  }

  /// Goes to another phase, and notes when that begins.
  void enter(phase next);

  /// The next step begins to collect: tells the user.
  void begin_step();

  /// A snapshot is begun, without any of its parts.
  void open_snapshot();

  /// Whether a snapshot is to be taken. @param last After which the job ends.
  [[nodiscard]] bool wants_snapshot(bool last) const {
    return config.wants_snapshot && config.wants_snapshot(step, last);
  }

  /// Closes the books of the current step, and counts it. @pre The ledger is complete.
  [[nodiscard]] step_record close_books();

  /// The snapshot with all its parts.
  [[nodiscard]] job_snapshot close_snapshot();

  /// A replica is there: tells the user, and warns of one that comes late, or again.
  void note_join(uint32_t replica, replica_actor handle);

  /// Whether a replica that says so leaves a job that goes on without it, or ends anyway.
  /// @param reason Why it leaves, by its farewell: cancelled, if its process was asked to stop.
  /// @pre It has left the roster.
  [[nodiscard]] bool may_leave(const error& reason) const {
    return reason.code == errc::cancelled && (end.asked || enough_live());
  }

  /// Tells the user of a replica that has left as it may.
  void note_departure(uint32_t replica) const;

  /// A replica is gone: notes why, whether it is awaited, and whether the job is to end for it; and
  /// tells the user of the trouble. The job stops with its step if it lacks a replica because that
  /// was asked to leave: nothing is lost that a last snapshot could not hold.
  /// @pre It has left the roster. @returns Its line of the report.
  const lost_replica& note_loss(uint32_t replica, error reason);

  /// An awaited replica has not come back in time. If its process was asked to stop, and too few
  /// replicas are left, the job stops with its step, and a last snapshot.
  /// @returns Why the job fails at once; nothing if it does not.
  [[nodiscard]] std::optional<error> give_up(uint32_t replica);

  /// A replica has left a job that ends: tells the user, if it failed by itself. A function may
  /// fail before the last step, and its replica say so after it. @pre It has left the roster.
  void note_late_failure(uint32_t replica, error reason);

  /// Tells the user of a loss, and how the job goes on.
  void warn_of(const lost_replica& lost) const;

  /// Why the job cannot go on after a loss.
  [[nodiscard]] error want_of_replicas(const lost_replica& lost) const;

  /// The first replica of this report that there is not, as an error.
  [[nodiscard]] std::optional<error> stranger_in(wire::TakenGradient::Reader report) const;

  /// True if the step waits for more gradients than replicas are left, since their number was
  /// chosen before one was lost: then it waits for as many as are left. With none left it waits on,
  /// and cannot end.
  [[nodiscard]] bool lowers_needed();

  /// True if the replicas that are left are as many as the job is to have, and can give enough
  /// gradients to the next step. Where one replica may give several, only the token queue can tell.
  [[nodiscard]] bool enough_live() const;

  /// The error of a phase that has waited too long for answers of accumulators or owners, or for
  /// parts of a snapshot; nothing if none is late.
  [[nodiscard]] std::optional<error> overdue(job_time now) const;

  /// The error of a step that takes longer than its deadline; warns once before.
  /// @param waiting Replicas that wait for a token.
  [[nodiscard]] std::optional<error> lateness(const std::set<uint32_t>& waiting, job_time now);

  /// The time of the first look after the next deadline of anything that is awaited; the end of
  /// time if there is none. Looks happen at whole multiples of the period, whenever the job began.
  [[nodiscard]] job_time first_deadline(job_time now) const;

  /// When to look again.
  [[nodiscard]] job_time look_after(job_time now) const;

  /// Whether the step cannot end. A replica pushes before it asks for a token, and an accumulator
  /// reports a full step before it answers the push. So if all live replicas wait for a token and
  /// no report has come, none ever will.
  /// @param waiting Replicas that a look has found waiting: there is no token, or none for them
  /// before the step ends.
  /// @returns True with the second such look only, since the takes of a new step may still be on
  /// their way.
  [[nodiscard]] bool finds_stall(const std::set<uint32_t>& waiting);

  /// How many gradients each accumulator lacks, if all replicas wait and the step cannot end. Where
  /// training is asynchronous, replicas may have been lost between the parts of their gradients:
  /// since nothing is on its way, every accumulator should have had as many gradients as any other.
  /// If owners were lost, too, it should have had as many as the step needs: none can give again
  /// the gradients that both had. @returns Nothing if that is not why the step cannot end.
  [[nodiscard]] std::vector<uint32_t>
  lost_parts(std::span<const accumulator_progress> progress) const;

  /// The step that is not over, without the tokens that are left.
  [[nodiscard]] open_step not_over() const { return {step + 1, live_count(), open.needed, {}}; }

  /// The error that reports a stall. Its code is `stalled`; or, if replicas were lost and are not
  /// back, that of the last loss, which it names. Where tokens are counted, the token of a replica
  /// that is back is lost, too. @param tokens The number of tokens in the queue.
  /// @param progress How far each accumulator has come.
  [[nodiscard]] error stall(uint32_t tokens, std::span<const accumulator_progress> progress) const;

private:
  [[nodiscard]] uint32_t live_count() const { return roster.count(replica_roster::presence::live); }

  [[nodiscard]] uint32_t choose_needed() const;
  [[nodiscard]] std::string prospects() const;
  [[nodiscard]] std::vector<std::string>
  lacking_variables(std::span<const accumulator_progress> progress) const;
  [[nodiscard]] std::string missing(const std::set<uint32_t>& waiting) const;
};

/// The behaviour of the chief.
chief_actor::behavior_type chief(observed_pointer<chief_actor, chief_state> self,
                                 chief_config config);

} // namespace troupe
