// SPDX-License-Identifier: Apache-2.0
// The chief's handlers: the life of a step, and of a job.
#include "actors/training/chief.hpp"

#include "actors/recording/seconds.hpp"
#include "kernels/math/clip.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using chief_pointer = observed_pointer<chief_actor, chief_state>;
using chief_phase = chief_state::phase;

constexpr auto no_step_is_wanted = std::numeric_limits<uint64_t>::max();

// ---- speaking to others ----

template <class Message>
void tell_accumulators(chief_pointer self, const Message& message) {
  for (const auto& each : self->state.config.collected)
    self->send(each.accumulator, message);
}

void tell_replicas(chief_pointer self, const msg<wire::CancelStep>& cancel) {
  for (auto index : self->state.roster.live())
    self->send(self->state.handles[index], cancel);
}

// Where replicas keep pace, none is to wait for the clock of one that is gone.
void stop_clock(chief_pointer self, uint32_t gone) {
  const auto& config = self->state.config;
  if (traits_of(config.sync.policy).keeps_pace()) self->send(config.tokens, make_farewell(gone));
}

// ---- when to look ----

void look_at(chief_pointer self, job_time time) {
  auto& planned = self->state.planned_looks;
  if (!planned.empty() && *planned.begin() <= time) return;
  planned.insert(time);
  self->delayed_send(self, time - self->state.config.world->now(), watch_tick{});
}

// Plans a look for the first deadline. Called when a wait with a deadline begins.
void keep_deadlines(chief_pointer self) {
  auto first = self->state.first_deadline(self->state.config.world->now());
  if (first < job_time::max()) look_at(self, first);
}

void enter(chief_pointer self, chief_phase next) {
  self->state.enter(next);
  keep_deadlines(self);
}

// ---- the end of a job ----

void conclude(chief_pointer self) {
  auto& state = self->state;
  state.now_in.enter(chief_phase::over);
  state.end.report.step = state.step;
  for (const auto& each : state.config.collected)
    self->send_exit(each.accumulator, caf::exit_reason::user_shutdown);
  self->send_exit(state.config.tokens, caf::exit_reason::user_shutdown);
  for (auto index : state.roster.live())
    self->send_exit(state.handles[index], caf::exit_reason::kill);
  self->send(state.config.recorder, state.end.report);
  self->quit();
}

void conclude_if_deserted(chief_pointer self) {
  if (self->state.roster.left() == 0 && !self->state.end.asks_queue) conclude(self);
}

// Reports the step that is not over, with the tokens that are left in the queue.
void report_open_step(chief_pointer self) {
  auto& state = self->state;
  state.end.report.open = state.not_over();
  state.end.asks_queue = true;
  auto on_status = [self](std::optional<uint32_t> tokens) {
    self->state.end.report.open->tokens = tokens;
    self->state.end.asks_queue = false;
    conclude_if_deserted(self);
  };
  self
    ->request(state.config.tokens, caf::infinite, // the watch keeps the deadline
              make_read_queue_status())
    .then(
      [on_status](const msg<wire::QueueStatus>& queue) { on_status(queue.reader().getTokens()); },
      [on_status](const caf::error&) { on_status({}); });
}

void finish(chief_pointer self, std::optional<error> failure) {
  auto& state = self->state;
  if (!state.is_training()) return;
  if (failure) state.config.on_trouble(failure->message);
  for (auto replica : state.roster.awaited())
    state.roster.give_up(replica);
  // A replica that has used up a deadline is not waited for much longer.
  auto& deadline = state.config.leave_deadline;
  if (failure && failure->code == errc::deadline_exceeded)
    deadline = std::min<job_time>(deadline, std::chrono::seconds{1});
  enter(self, chief_phase::ending);
  if (failure) report_open_step(self);
  state.end.report.failure = std::move(failure);
  self->send(state.config.tokens, make_close_tokens());
  tell_replicas(self, make_cancel_step(no_step_is_wanted));
  conclude_if_deserted(self);
}

void on_stop(chief_pointer self, const msg<wire::StopJob>& stop) {
  auto& state = self->state;
  if (!state.is_training() || state.end.report.stopped) return;
  state.end.report.stopped = read_line(stop.reader().getReason());
  state.end.ask(state.config.world->now());
  keep_deadlines(self);
}

// Asks an actor that the job cannot do without: if it is gone, the job has failed.
template <class Handle, class Message, class Then>
void ask(chief_pointer self, const Handle& actor, const Message& message, Then then) {
  self
    ->request(actor, caf::infinite, message) // the watch keeps the deadline
    .then(then, [self](const caf::error& reason) { finish(self, from_caf(reason)); });
}

// ---- between two steps ----

void begin_step(chief_pointer self);

void go_on(chief_pointer self) {
  auto& state = self->state;
  if (state.is_last()) return finish(self, state.end.reason);
  self->send(state.config.tokens, make_put_tokens(state.step, state.config.sync.tokens_per_step()));
  begin_step(self);
}

void on_part(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::saving || --state.saving.missing > 0) return;
  self->send(state.config.recorder, state.close_snapshot());
  go_on(self);
}

// Asks an actor for its part of the snapshot, and has `keep` put the answer there. A replica may be
// gone; the job cannot do without any of the others.
template <class Reply, class Handle, class Message, class Keep>
void ask_for_part(chief_pointer self, const Handle& actor, const Message& message, Keep keep) {
  ++self->state.saving.missing;
  self
    ->request(actor, caf::infinite, message) // the watch keeps the deadline
    .then(
      [self, keep](const Reply& reply) {
        keep(self->state.saving.taken, reply);
        on_part(self);
      },
      [self](const caf::error& reason) {
        if (std::is_same_v<Reply, msg<wire::ReplicaProgress>>) return on_part(self);
        finish(self, from_caf(reason));
      });
}

void take_snapshot(chief_pointer self) {
  auto& state = self->state;
  const auto& config = state.config;
  state.open_snapshot();
  keep_deadlines(self);
  if (!state.saving.is_taken_back) // else its tokens are put again, all of them
    ask_for_part<msg<wire::QueueStatus>>(self, config.tokens, make_read_queue_status(),
                                         [](job_snapshot& into, const auto& status) {
                                           for (auto step : status.reader().getSteps())
                                             into.tokens.push_back(step);
                                         });
  for (size_t i = 0; i < config.owners.size(); ++i)
    ask_for_part<msg<wire::VariableState>>(
      self, config.owners[i], make_read_state(), [i](job_snapshot& into, const auto& variable) {
        into.variables[i].state = read_state(variable.reader(), variable.owner());
      });
  for (auto index : state.roster.live())
    ask_for_part<msg<wire::ReplicaProgress>>(
      self, state.handles[index], make_read_progress(),
      [](job_snapshot& into, const auto& progress) {
        into.replicas.push_back(read_progress(progress.reader(), progress.owner()));
      });
}

// Other messages of the moment at which the step was closed may still be on their way. The chief
// handles them before the snapshot, which has to know all, and before the tokens, so that a
// snapshot makes no difference to the steps that follow.
void settle(chief_pointer self) {
  enter(self, chief_phase::settling);
  self->state.config.world->send_last(caf::actor_cast<caf::actor>(self),
                                      caf::make_message(moment_over{}));
}

void on_settled(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::settling) return;
  auto is_saved = std::exchange(state.config.resumes, false);
  if (!is_saved && state.wants_snapshot(state.is_last())) return take_snapshot(self);
  go_on(self);
}

// ---- a step that is taken back ----

// Only a step that is collected is taken back: the updates of a later phase have a deadline of
// their own.
void take_step_back(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::collecting) return;
  state.now_in.enter(chief_phase::taking_back);
  tell_accumulators(self, make_cancel_takes());
}

// Where a variable is a step ahead of the others, there is no snapshot.
void end_if_taken_back(chief_pointer self) {
  auto& state = self->state;
  auto changed = state.open.applied.size(); // an update that is held has changed nothing
  auto variables = state.config.collected.size();
  if (state.open.cancelled + state.open.ahead() < variables) return;
  if (state.step > state.config.first_step && state.wants_snapshot(true)) {
    if (changed == 0) return take_snapshot(self);
    state.config.on_warning(fmt::format("no checkpoint of step {}: step {} has changed {} of {} "
                                        "variables, and cannot end",
                                        state.step, state.step + 1, changed, variables));
  }
  finish(self, state.end.reason);
}

void on_not_applied(chief_pointer self, const error& reason) {
  auto& state = self->state;
  if (state.now_in != chief_phase::taking_back || reason.code != errc::cancelled)
    return finish(self, reason);
  ++state.open.cancelled;
  end_if_taken_back(self);
}

// ---- the life of a step ----

void end_step_if_complete(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::applying
      || state.open.applied.size() < state.config.collected.size())
    return;
  self->send(state.config.recorder, state.close_books());
  settle(self);
}

void keep_norms(chief_state& state, size_t index, wire::UpdateApplied::Reader applied) {
  const auto& positions = state.config.collected[index].positions;
  auto norms = applied.getSquaredNorms();
  for (uint32_t i = 0; i < norms.size() && i < positions.size(); ++i)
    state.open.norms[positions[i]].squared_mean = norms[i];
  if (norms.size() == 0)
    state.open.norms[positions.front()] = {applied.getSquaredNorm(), applied.getMeanSquaredNorm()};
}

void on_applied(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& applied) {
  auto& state = self->state;
  auto done = applied.reader();
  const auto& collected = state.config.collected[index];
  if (state.config.sync.measures() && !state.open.norms.contains(collected.positions.front()))
    keep_norms(state, index, done);
  state.open.applied.push_back(
    {collected.name, job_time{done.getAppliedNanoseconds()}, job_time{done.getTookNanoseconds()}});
  state.now_in == chief_phase::taking_back ? end_if_taken_back(self) : end_step_if_complete(self);
}

// The norm by which mean gradients are clipped is that of all: each has to be known before the
// first is applied.
void on_measured(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& held) {
  auto& state = self->state;
  ++state.open.held;
  keep_norms(state, index, held.reader());
  if (state.now_in == chief_phase::taking_back) return end_if_taken_back(self);
  const auto& collected = state.config.collected;
  if (state.open.held < collected.size()) return;
  auto norm = std::sqrt(state.open.all_norms().squared_mean);
  auto release = make_release_update(clip_factor(norm, state.config.sync.clip_global_norm));
  for (size_t i = 0; i < collected.size(); ++i)
    ask(self, collected[i].holder, release,
        [self, i](const msg<wire::UpdateApplied>& applied) { on_applied(self, i, applied); });
}

void begin_step(chief_pointer self) {
  auto& state = self->state;
  state.begin_step();
  keep_deadlines(self);
  auto holds = state.config.sync.clip_global_norm > 0;
  auto take = make_take_gradient(state.open.needed, holds, state.config.sync.measures());
  for (size_t i = 0; i < state.config.collected.size(); ++i) {
    const auto& accumulator = state.config.collected[i].accumulator;
    self
      ->request(accumulator, caf::infinite, take) // the watch keeps the deadline
      .then(
        [self, i, holds](const msg<wire::UpdateApplied>& done) {
          holds ? on_measured(self, i, done) : on_applied(self, i, done);
        },
        [self](const caf::error& reason) { on_not_applied(self, from_caf(reason)); });
  }
}

void on_taken(chief_pointer self, const msg<wire::TakenGradient>& report) {
  auto& state = self->state;
  if (!state.is_training()) return;
  auto taken = report.reader();
  auto is_due = state.is_collecting() && !state.ledger.complete();
  if (!is_due && !taken.getAmends()) return; // it comes twice, or was not asked for
  if (auto stranger = state.stranger_in(taken)) return finish(self, std::move(stranger));
  state.ledger.add(read_arrivals(taken.getAccepted()), read_arrivals(taken.getStale()),
                   taken.getAmends());
  if (!state.ledger.complete() || !state.is_collecting()) return;
  state.now_in.enter(chief_phase::applying);
  if (traits_of(state.config.sync.policy).cancels())
    tell_replicas(self, make_cancel_step(state.step + 1));
  end_step_if_complete(self);
}

// ---- the replicas that are there, and the owners ----

void on_join(chief_pointer self, uint32_t index) {
  auto& state = self->state;
  if (!self->current_sender() || !state.roster.has(index)) return; // no replica of this job
  auto replica = caf::actor_cast<replica_actor>(self->current_sender());
  self->monitor(replica);
  state.note_join(index, replica);
  if (!state.is_training()) self->send(replica, make_cancel_step(no_step_is_wanted));
}

// The number of gradients may have been chosen before a replica was lost.
void need_no_more_than_are_left(chief_pointer self) {
  auto& state = self->state;
  if (state.lowers_needed())
    tell_accumulators(self, make_cancel_takes(state.open.needed, state.step));
}

// If the job stops for a loss, its step goes on; the watch takes it back if it does not end.
void on_leave(chief_pointer self, uint32_t index, error reason) {
  auto& state = self->state;
  if (!state.roster.leave(index)) return;
  state.handles[index] = nullptr;
  stop_clock(self, index);
  if (state.now_in == chief_phase::ending) {
    state.note_late_failure(index, std::move(reason));
    return conclude_if_deserted(self);
  }
  if (state.may_leave(reason)) {
    state.note_departure(index);
    return need_no_more_than_are_left(self);
  }
  const auto& lost = state.note_loss(index, std::move(reason));
  keep_deadlines(self);
  if (state.end.reason) return;
  if (!state.enough_live()) return finish(self, state.want_of_replicas(lost));
  state.warn_of(lost);
  need_no_more_than_are_left(self);
}

void on_down(chief_pointer self, const caf::down_msg& down) {
  const auto& handles = self->state.handles;
  auto is_gone = [&down](const replica_actor& replica) { return replica == down.source; };
  auto found = std::ranges::find_if(handles, is_gone);
  if (found == handles.end()) return;
  auto why
    = is_lost_node(down.reason) ? from_caf(down.reason).message : "is gone without a farewell";
  on_leave(self, static_cast<uint32_t>(found - handles.begin()),
           {errc::unavailable, std::move(why)});
}

// Ends the wait for replicas that were awaited for `rejoin_timeout`.
void give_up_awaited(chief_pointer self) {
  auto& state = self->state;
  auto timeout = state.config.rejoin_timeout;
  for (auto index : state.roster.awaited()) {
    if (state.config.world->now() - state.roster.since(index) <= timeout) continue;
    if (auto failure = state.give_up(index)) return finish(self, std::move(failure));
    need_no_more_than_are_left(self);
  }
}

// The mirrors of lost owners hold their variables, so nothing is lost this time.
void on_owners_lost(chief_pointer self, const msg<wire::OwnersLost>& lost) {
  auto& state = self->state;
  if (!state.is_training()) return;
  state.has_lost_owners = true;
  auto reason = read_line(lost.reader().getReason());
  state.config.on_trouble(reason);
  state.config.on_warning(reason + "; the job goes on");
}

void on_owners_mirrored(chief_pointer self, const msg<wire::OwnersMirrored>& mirrored) {
  if (self->state.is_training())
    self->state.config.on_warning(read_line(mirrored.reader().getReason()));
}

// ---- the watch: every wait has an end, and names what is missing ----

// Has accumulators count the parts of gradients that never come as given, so that none stays behind
// the others for ever.
void do_without(chief_pointer self, const std::vector<accumulator_progress>& progress,
                const std::vector<uint32_t>& lacking) {
  const auto& config = self->state.config;
  for (size_t i = 0; i < lacking.size(); ++i) {
    if (lacking[i] == 0) continue;
    self->send(config.collected[i].accumulator, make_count_missing(lacking[i], progress[i].step));
    self->state.config.on_warning(
      fmt::format("'{}' does without {} gradients that lost replicas gave only in part",
                  config.collected[i].name, lacking[i]));
  }
}

void on_confirmed(chief_pointer self, const std::vector<accumulator_progress>& progress,
                  uint32_t tokens) {
  auto& state = self->state;
  auto lacking = state.lost_parts(progress);
  if (!lacking.empty()) return do_without(self, progress, lacking);
  state.end.asked ? take_step_back(self) : finish(self, state.stall(tokens, progress));
}

// A report may still be on its way from another node. The answer of an accumulator comes after its
// reports: so when all have answered and the step is still open, no report will come.
void confirm_stall(chief_pointer self, uint32_t tokens) {
  const auto& collected = self->state.config.collected;
  auto missing = std::make_shared<size_t>(collected.size());
  auto progress = std::make_shared<std::vector<accumulator_progress>>(*missing);
  for (size_t i = 0; i < collected.size(); ++i)
    ask(self, collected[i].accumulator, make_read_accumulator(),
        [self, missing, progress, i, tokens,
         step = self->state.step](const msg<wire::AccumulatorStatus>& status) {
          (*progress)[i] = {status.reader().getStep(), status.reader().getAccumulated()};
          const auto& state = self->state;
          if (--*missing == 0 && state.now_in == chief_phase::collecting && state.step == step)
            on_confirmed(self, *progress, tokens);
        });
}

void look(chief_pointer self, const msg<wire::QueueStatus>& status) {
  auto& state = self->state;
  if (state.now_in != chief_phase::collecting) return;
  auto waits = status.reader().getWaiting();
  std::set<uint32_t> waiting{waits.begin(), waits.end()};
  if (state.finds_stall(waiting)) return confirm_stall(self, status.reader().getTokens());
  if (auto late = state.lateness(waiting, state.config.world->now())) finish(self, std::move(late));
}

void watch(chief_pointer self) {
  auto& state = self->state;
  state.planned_looks.erase(state.planned_looks.begin());
  auto now = state.config.world->now();
  if (state.is_training() && state.end.asked && now - *state.end.asked > state.config.stop_timeout)
    take_step_back(self);
  if (state.is_training()) give_up_awaited(self);
  if (auto late = state.overdue(now)) finish(self, std::move(late));
  if (state.now_in == chief_phase::ending
      && now - state.phase_began > state.config.leave_deadline) {
    for (auto index : state.roster.live())
      state.end.report.lost.push_back(
        {index, {errc::deadline_exceeded, "did not leave when the job was over"}});
    return conclude(self);
  }
  if (state.is_collecting())
    ask(self, state.config.tokens, make_read_queue_status(),
        [self](const msg<wire::QueueStatus>& status) { look(self, status); });
  look_at(self, state.look_after(now));
}

// ---- the beginning ----

void begin(chief_pointer self) {
  auto& state = self->state;
  for (auto index : state.config.absent)
    stop_clock(self, index);
  if (state.config.resumes) return settle(self);
  if (auto count = state.config.sync.first_tokens(); count > 0)
    self->send(state.config.tokens, make_put_tokens(state.step, count));
  begin_step(self);
}

} // namespace

chief_actor::behavior_type chief(chief_pointer self, chief_config config) {
  self->state = chief_state{std::move(config)};
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  begin(self);
  look_at(self, self->state.look_after(self->state.config.world->now()));
  return {
    [self](const msg<wire::JoinJob>& join) { on_join(self, join.reader().getReplica()); },
    [self](const msg<wire::Farewell>& farewell) {
      auto leaving = farewell.reader();
      on_leave(self, leaving.getReplica(), read_error(leaving));
    },
    [self](const msg<wire::TakenGradient>& report) { on_taken(self, report); },
    [self](const msg<wire::StopJob>& stop) { on_stop(self, stop); },
    [self](const msg<wire::OwnersLost>& lost) { on_owners_lost(self, lost); },
    [self](const msg<wire::OwnersMirrored>& mirrored) { on_owners_mirrored(self, mirrored); },
    [self](watch_tick) { watch(self); },
    [self](moment_over) { on_settled(self); },
  };
}

} // namespace troupe
