// SPDX-License-Identifier: Apache-2.0
// The chief: closes steps, hands out tokens, knows what is alive, and ends the job.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/backup_choice.hpp"
#include "actors/policies/sync_options.hpp"
#include "actors/training/step_ledger.hpp"
#include "actors/world/world.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Whether a job with these options may go on after a replica was lost: the others give what a step
/// needs, each once or several times.
[[nodiscard]] bool may_lose_replicas(const sync_options& sync);

/// What a chief leads.
struct chief_config {
  sync_options sync;
  std::vector<uint32_t> absent; ///< Of the replicas: those that will never come.
  uint64_t first_step = 0;
  uint64_t steps = 1;                          ///< Updates to make.
  std::vector<accumulator_actor> accumulators; ///< One for each variable; the chief ends them.
  std::vector<std::string> variables;          ///< Their names, in the same order.
  std::vector<variable_owner_actor> owners;    ///< Likewise; asked for what they hold.
  token_queue_actor tokens;                    ///< The chief ends it.
  recorder_actor recorder;                     ///< Told of every step, and last of the job's end.
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
  /// Whether a snapshot is to be taken after so many updates, the job's last or not; empty: never.
  std::function<bool(uint64_t step, bool last)> wants_snapshot;
  /// How long a job that is asked to end may go on to the end of its step; then the step is taken
  /// back, and a last snapshot is of the one before.
  job_time stop_patience = std::chrono::seconds{5};
  /// Whether the job goes on from a snapshot: then the next thing it does is hand out tokens.
  bool resumes = false;
  /// How long a replica of a lost node is expected back, before the job goes on, or ends, without
  /// it. If it comes later, while the job goes on, it takes part again.
  job_time rejoin_patience{0};
  /// Whether the loss of a replica ends the job, with a last snapshot, however many are left.
  bool stops_on_loss = false;
  /// What an update multiplies the mean gradient by, if that is all that it does; else 0. Says how
  /// curved the loss is, where the number of backups is dynamic.
  double learning_rate = 0;
  troupe::world* world = nullptr; ///< Outlives the actor.
};

/// How far an accumulator has come.
struct accumulator_progress {
  uint64_t step = 0;      ///< That it collects for.
  uint64_t gradients = 0; ///< That it has for this step and later ones.
};

/// What the chief knows.
///
/// | phase      | until                                             | then |
/// |------------|---------------------------------------------------|-------------------------------|
/// | collecting | every accumulator has closed the step             | applying (`cancel`: say so) |
/// | applying   | every owner has applied the update                | settling |
/// | settling   | all that was due at the moment is done            | saving, if that is wanted |
/// | saving     | all that were asked have said where they are      | the recorder is told |
/// |            | then, after either                                | tokens, then collecting, or |
/// |            |                                                   | ending after the last step |
/// | ending     | every replica has come and left, or the deadline  | over: report, quit |
///
/// A failure leads from the first four to `ending` at any time, StopJob at the end of the step. A
/// step settles, and is saved, in no virtual time: the steps do not show which of them were saved.
/// A step that does not end although the job is to end with it is taken back: no accumulator waits
/// for it any more, and what they hold is given up.
struct chief_state {
  static inline const char* name = "chief";

  enum class phase : uint8_t { collecting, applying, settling, saving, ending, over };

  chief_config config;
  phase now_in = phase::collecting;
  uint64_t step = 0;                      ///< The global step: updates that are done.
  std::vector<variable_update> applied;   ///< What owners have done of the current update.
  std::map<size_t, gradient_norms> norms; ///< Of what owners hold or have measured, by variable.
  std::optional<backup_choice> choice;    ///< If the number of backups is dynamic.
  uint32_t needed = 0;                    ///< Gradients that the current step waits for.
  job_time step_began{0};
  step_ledger ledger{0};
  std::map<uint32_t, replica_actor> live;          ///< Joined and not left.
  std::unordered_map<uint64_t, uint32_t> index_of; ///< Of those that live, by their CAF ids.
  uint32_t expected = 0;                           ///< Still on their way.
  std::vector<bool> has_come;                      ///< By replica: whether it has ever joined.
  std::map<uint32_t, job_time> awaited; ///< Of these: those that were there, and since when.
  std::set<uint32_t> given_up;          ///< Those that were there and are expected no more.
  bool suspects_stall = false;          ///< The last look found all replicas waiting.
  bool warned = false;                  ///< Of the current step's lateness.
  job_snapshot snapshot;                ///< The one that is being taken.
  size_t snapshot_missing = 0;          ///< Answers that it still waits for.
  job_time phase_began{0};              ///< Of `saving` and `ending`.
  std::optional<job_time> stop_asked;   ///< Since when the job is to end with its step.
  std::optional<error> stop_reason;     ///< If that is a failure.
  std::set<job_time> planned_looks;     ///< When the watch will look for what is missing.
  bool has_lost_owners = false;         ///< The job goes on with their mirrors.
  std::optional<size_t> taken_back;     ///< Accumulators that wait no more, of a step taken back.
  bool asks_queue = false; ///< How many tokens are left; before it is told, nothing is over.
  job_report report;

  /// The first step that the job will not make.
  [[nodiscard]] uint64_t last_step() const { return config.first_step + config.steps; }

  /// True if no step comes after the one that is closed.
  [[nodiscard]] bool is_last() const { return step == last_step() || stop_asked; }

  /// Closes the books of the current step. @pre The ledger is complete.
  [[nodiscard]] step_record close_books(job_time now);

  /// A replica is awaited no more.
  void give_up(uint32_t replica);

  /// None of them is: the job ends.
  void await_nobody();

  /// How the job goes on after a loss, in words.
  [[nodiscard]] std::string prospects() const;

  /// The first replica of this report that there is not.
  [[nodiscard]] std::optional<uint32_t> stranger_in(wire::TakenGradient::Reader report) const;

  /// The sum of what owners have measured, in the order of variables.
  [[nodiscard]] gradient_norms all_norms() const;

  /// How many gradients the next step waits for.
  [[nodiscard]] uint32_t choose_needed() const;

  /// Replicas that are there or on their way.
  [[nodiscard]] size_t left_count() const { return live.size() + expected; }

  /// True if no replica is there and none will come.
  [[nodiscard]] bool is_deserted() const { return left_count() == 0; }

  /// True if the replicas that are left can give enough gradients to the next step. Where one
  /// replica may give several, only the token queue can tell.
  [[nodiscard]] bool enough_live() const;

  /// The variables whose owners have not said yet that they have applied the current update.
  [[nodiscard]] std::vector<std::string> not_applied() const;

  /// An owner may be heard of as ever, and say nothing: what to say if that is too late.
  [[nodiscard]] std::optional<error> silent_owners(job_time now) const;

  /// The first look after the next deadline: of all that may be late, or is no longer to be waited
  /// for. Looks happen at whole multiples of the period, whenever the job began. The end of time
  /// if there is no deadline.
  [[nodiscard]] job_time first_deadline(job_time now) const;

  /// When to look again.
  [[nodiscard]] job_time look_after(job_time now) const;

  /// A look has found these waiting for a token: there is none, or none for them before the step
  /// ends. A replica pushes before it asks for a token, and an accumulator reports a full step
  /// before it answers the push. So if all wait that live and no report has come, none ever will.
  /// @returns Whether that is so; true with the second look only, since the takes of a new step may
  /// still be on their way.
  [[nodiscard]] bool finds_stall(const std::set<uint32_t>& waiting);

  /// All replicas wait, and the step cannot end. Where training is asynchronous that may be because
  /// replicas were lost between the parts of their gradients: since nothing is on its way, every
  /// accumulator is to have had as many gradients as any other; and if owners were lost, too, as
  /// many as the step needs: none can give again what both had.
  /// @returns How many each of them lacks; nothing if that is not why.
  [[nodiscard]] std::vector<uint32_t>
  lost_parts(std::span<const accumulator_progress> progress) const;

  /// The step that is not over, but for the tokens that are left.
  [[nodiscard]] open_step not_over() const;

  /// What to say of a stall. @param tokens That are in the queue.
  [[nodiscard]] error stall(uint32_t tokens) const;

  /// "replica 2, replica 5": those that live but do not wait for a token.
  [[nodiscard]] std::string missing(const std::set<uint32_t>& waiting) const;
};

/// The behaviour of the chief.
chief_actor::behavior_type chief(observed_pointer<chief_actor, chief_state> self,
                                 chief_config config);

} // namespace troupe
