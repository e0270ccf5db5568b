// SPDX-License-Identifier: Apache-2.0
// The chief: the life of a step, and of a job.
#include "actors/training/chief.hpp"

#include "actors/policies/asynchronous_rule.hpp"
#include "actors/recording/seconds.hpp"
#include "kernels/math/clip.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace troupe {

namespace {

using chief_pointer = observed_pointer<chief_actor, chief_state>;
using chief_phase = chief_state::phase;

constexpr auto no_step_is_wanted = std::numeric_limits<uint64_t>::max();

void finish(chief_pointer self, std::optional<error> failure);

bool is_training(const chief_state& state) {
  return state.now_in < chief_phase::ending;
}

void keep_deadlines(chief_pointer self);

void enter(chief_pointer self, chief_phase next) {
  self->state.now_in = next;
  self->state.phase_began = self->state.config.world->now();
  keep_deadlines(self);
}

void tell_replicas(chief_pointer self, const msg<wire::CancelStep>& cancel) {
  for (const auto& [index, replica] : self->state.live)
    self->send(replica, cancel);
}

// ---- the life of a step ----

void on_measured(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& held);
void on_applied(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& applied);
void on_not_applied(chief_pointer self, const error& reason);
void end_if_taken_back(chief_pointer self);
void end_step_if_complete(chief_pointer self);
void go_on(chief_pointer self);
void take_snapshot(chief_pointer self);
void settle(chief_pointer self);

void keep_norms(chief_state& state, size_t index, wire::UpdateApplied::Reader said) {
  state.norms[index] = {said.getSquaredNorm(), said.getMeanSquaredNorm()};
}

void begin_step(chief_pointer self) {
  auto& state = self->state;
  state.now_in = chief_phase::collecting;
  state.applied.clear();
  state.norms.clear();
  state.needed = state.choose_needed();
  state.step_began = state.config.world->now();
  state.suspects_stall = state.warned = false;
  keep_deadlines(self);
  auto holds = state.config.sync.clip_global_norm > 0;
  auto take = make_take_gradient(state.needed, holds, state.config.sync.measures());
  for (size_t i = 0; i < state.config.accumulators.size(); ++i)
    self
      ->request(state.config.accumulators[i], caf::infinite, take) // the watch keeps the deadline
      .then(
        [self, i, holds](const msg<wire::UpdateApplied>& done) {
          holds ? on_measured(self, i, done) : on_applied(self, i, done);
        },
        [self](const caf::error& reason) { on_not_applied(self, from_caf(reason)); });
}

// All mean gradients have to be known before the first is applied.
void on_measured(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& held) {
  auto& state = self->state;
  keep_norms(state, index, held.reader());
  if (state.taken_back) return end_if_taken_back(self);
  if (state.norms.size() < state.config.owners.size()) return;
  auto norm = std::sqrt(state.all_norms().squared_mean);
  auto release = make_release_update(clip_factor(norm, state.config.sync.clip_global_norm));
  for (size_t i = 0; i < state.config.owners.size(); ++i)
    self
      ->request(state.config.owners[i], caf::infinite, release) // the owner answers, or is gone
      .then([self, i](const msg<wire::UpdateApplied>& applied) { on_applied(self, i, applied); },
            [self](const caf::error& reason) { finish(self, from_caf(reason)); });
}

void on_applied(chief_pointer self, size_t index, const msg<wire::UpdateApplied>& applied) {
  auto& state = self->state;
  auto done = applied.reader();
  if (state.config.sync.measures() && !state.norms.contains(index)) keep_norms(state, index, done);
  state.applied.push_back({state.config.variables[index], job_time{done.getAppliedNanoseconds()},
                           job_time{done.getTookNanoseconds()}});
  state.taken_back ? end_if_taken_back(self) : end_step_if_complete(self);
}

void on_taken(chief_pointer self, const msg<wire::TakenGradient>& report) {
  auto& state = self->state;
  if (!is_training(state)) return;
  auto said = report.reader();
  auto is_due = state.now_in == chief_phase::collecting && !state.ledger.complete();
  if (!is_due && !said.getAmends()) return; // it comes twice, or was not asked for
  if (auto stranger = state.stranger_in(said))
    return finish(
      self, error{errc::malformed,
                  fmt::format("step {} was given a gradient of replica {}; there are {}",
                              state.step + 1, *stranger, state.config.sync.total_num_replicas)});
  state.ledger.add(report);
  if (!state.ledger.complete() || state.now_in != chief_phase::collecting) return;
  state.now_in = chief_phase::applying;
  state.taken_back.reset(); // too late: all have what the step needs
  if (traits_of(state.config.sync.policy).cancels())
    tell_replicas(self, make_cancel_step(state.step + 1));
  end_step_if_complete(self);
}

void end_step_if_complete(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::applying
      || state.applied.size() < state.config.accumulators.size())
    return;
  auto record = state.close_books(state.config.world->now());
  if (state.choice) state.choice->add(record, state.all_norms());
  ++state.step;
  self->send(state.config.recorder, std::move(record));
  settle(self);
}

// Other messages of the moment at which the step was closed may still be on their way. They come
// before the snapshot, which has to know all, and before the tokens, so that it makes no difference
// whether a snapshot was taken.
void settle(chief_pointer self) {
  enter(self, chief_phase::settling);
  self->state.config.world->send_last(caf::actor_cast<caf::actor>(self),
                                      caf::make_message(moment_over{}));
}

void on_settled(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::settling) return;
  auto& wants_snapshot = state.config.wants_snapshot;
  auto is_saved = std::exchange(state.config.resumes, false);
  if (!is_saved && wants_snapshot && wants_snapshot(state.step, state.is_last()))
    return take_snapshot(self);
  go_on(self);
}

void go_on(chief_pointer self) {
  auto& state = self->state;
  if (state.is_last()) return finish(self, state.stop_reason);
  self->send(state.config.tokens, make_put_tokens(state.step, state.config.sync.tokens_per_step()));
  begin_step(self);
}

// ---- a step that is taken back ----

void take_step_back(chief_pointer self) {
  auto& state = self->state;
  if (state.taken_back || state.now_in == chief_phase::saving) return;
  if (state.now_in != chief_phase::collecting) return finish(self, state.stop_reason);
  state.taken_back = 0;
  for (const auto& accumulator : state.config.accumulators)
    self->send(accumulator, make_cancel_takes());
}

void on_not_applied(chief_pointer self, const error& reason) {
  auto& state = self->state;
  if (!state.taken_back || reason.code != errc::cancelled) return finish(self, reason);
  ++*state.taken_back;
  end_if_taken_back(self);
}

// Where a variable is a step ahead of the others, there is no snapshot.
void end_if_taken_back(chief_pointer self) {
  auto& state = self->state;
  auto ahead = std::max(state.applied.size(), state.norms.size());
  if (*state.taken_back + ahead < state.config.accumulators.size()) return;
  auto is_new = state.step > state.config.first_step;
  const auto& wants_snapshot = state.config.wants_snapshot;
  if (ahead == 0 && is_new && wants_snapshot && wants_snapshot(state.step, true))
    return take_snapshot(self);
  finish(self, state.stop_reason);
}

// ---- snapshots ----

// No replica has had a token of a step that was taken back: all are put again when the job goes on.
void forget_step(chief_state& state) {
  for (auto& replica : state.snapshot.replicas)
    replica.local_step = std::min(replica.local_step, state.step - 1);
}

void on_part(chief_pointer self) {
  auto& state = self->state;
  if (state.now_in != chief_phase::saving || --state.snapshot_missing > 0) return;
  std::ranges::sort(state.snapshot.replicas, {}, &replica_progress::replica);
  if (state.taken_back) forget_step(state);
  self->send(state.config.recorder, std::exchange(state.snapshot, {}));
  go_on(self);
}

// Has `keep` put the answer into the snapshot. A replica may be gone; without the others there is
// no job.
template <class Reply, class Handle, class Message, class Keep>
void ask_for_part(chief_pointer self, const Handle& whom, const Message& message, Keep keep) {
  ++self->state.snapshot_missing;
  self
    ->request(whom, caf::infinite, message) // the watch keeps the deadline
    .then(
      [self, keep](const Reply& reply) {
        keep(self->state.snapshot, reply);
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
  enter(self, chief_phase::saving);
  state.snapshot = {.step = state.step, .time = config.world->now(), .seed = config.world->seed()};
  for (const auto& name : config.variables)
    state.snapshot.variables.push_back({name, {}});
  if (!state.taken_back) // else its tokens are put again, all of them
    ask_for_part<msg<wire::QueueStatus>>(self, config.tokens, make_read_queue_status(),
                                         [](job_snapshot& into, const auto& said) {
                                           for (auto step : said.reader().getSteps())
                                             into.tokens.push_back(step);
                                         });
  for (size_t i = 0; i < config.owners.size(); ++i)
    ask_for_part<msg<wire::VariableState>>(
      self, config.owners[i], make_read_state(), [i](job_snapshot& into, const auto& said) {
        into.variables[i].state = read_state(said.reader(), said.owner());
      });
  for (const auto& [index, replica] : state.live)
    ask_for_part<msg<wire::ReplicaProgress>>(
      self, replica, make_read_progress(), [](job_snapshot& into, const auto& said) {
        into.replicas.push_back(read_progress(said.reader(), said.owner()));
      });
}

// ---- the replicas that are there ----

void on_join(chief_pointer self, uint32_t index) {
  auto& state = self->state;
  if (!self->current_sender() || index >= state.has_come.size()) return; // it is none of the job's
  auto replica = caf::actor_cast<replica_actor>(self->current_sender());
  self->monitor(replica);
  if (auto before = state.live.find(index); before != state.live.end())
    state.index_of.erase(before->second.id());
  else if (state.awaited.erase(index) > 0 || state.given_up.erase(index) == 0)
    --state.expected;
  state.has_come[index] = true;
  state.live.insert_or_assign(index, replica);
  state.index_of[replica.id()] = index;
  if (!is_training(state)) self->send(replica, make_cancel_step(no_step_is_wanted));
}

void on_leave(chief_pointer self, uint32_t index, error reason);

void on_down(chief_pointer self, const caf::down_msg& down) {
  auto found = self->state.index_of.find(down.source.id());
  if (found == self->state.index_of.end()) return;
  auto why
    = is_lost_node(down.reason) ? from_caf(down.reason).message : "is gone without a farewell";
  on_leave(self, found->second, {errc::unavailable, std::move(why)});
}

// ---- the end of a job ----

void conclude(chief_pointer self) {
  auto& state = self->state;
  state.now_in = chief_phase::over;
  state.report.step = state.step;
  for (const auto& accumulator : state.config.accumulators)
    self->send_exit(accumulator, caf::exit_reason::user_shutdown);
  self->send_exit(state.config.tokens, caf::exit_reason::user_shutdown);
  for (const auto& [index, replica] : state.live)
    self->send_exit(replica, caf::exit_reason::kill);
  self->send(state.config.recorder, state.report);
  self->quit();
}

void conclude_if_deserted(chief_pointer self) {
  if (self->state.is_deserted() && !self->state.asks_queue) conclude(self);
}

// Of a step that is not over it is told how many tokens are left.
void report_open_step(chief_pointer self) {
  auto& state = self->state;
  state.report.open = state.not_over();
  state.asks_queue = true;
  auto is_told = [self](std::optional<uint32_t> tokens) {
    self->state.report.open->tokens = tokens;
    self->state.asks_queue = false;
    conclude_if_deserted(self);
  };
  self
    ->request(state.config.tokens, caf::infinite, // the watch keeps the deadline
              make_read_queue_status())
    .then([is_told](const msg<wire::QueueStatus>& said) { is_told(said.reader().getTokens()); },
          [is_told](const caf::error&) { is_told({}); });
}

void finish(chief_pointer self, std::optional<error> failure) {
  auto& state = self->state;
  if (!is_training(state)) return;
  if (failure && state.config.on_trouble) state.config.on_trouble(failure->message);
  state.await_nobody();
  // A replica that has used up a deadline is not waited for much longer.
  auto& patience = state.config.leave_deadline;
  if (failure && failure->code == errc::deadline_exceeded)
    patience = std::min<job_time>(patience, std::chrono::seconds{1});
  enter(self, chief_phase::ending);
  if (failure) report_open_step(self);
  state.report.failure = std::move(failure);
  self->send(state.config.tokens, make_close_tokens());
  tell_replicas(self, make_cancel_step(no_step_is_wanted));
  conclude_if_deserted(self);
}

std::string describe(const lost_replica& lost) {
  return fmt::format("replica {}: {}", lost.replica, lost.reason.message);
}

// Where replicas keep pace, none is to wait for the clock of one that is gone.
void tell_clocks(chief_pointer self, uint32_t gone) {
  const auto& config = self->state.config;
  if (traits_of(config.sync.policy).keeps_pace())
    self->send(config.tokens, make_farewell(gone, errc::none, ""));
}

void finish_for_want_of_replicas(chief_pointer self, const lost_replica& lost) {
  auto& state = self->state;
  finish(self, error{lost.reason.code,
                     fmt::format("step {} needs {} gradients, but {} of {} replicas are left; "
                                 "lost {}",
                                 state.step + 1, state.needed, state.left_count(),
                                 state.config.sync.total_num_replicas, describe(lost))});
}

// A number that was chosen before a replica was lost may be more than are left.
void need_no_more_than_are_left(chief_pointer self) {
  auto& state = self->state;
  auto count = static_cast<uint32_t>(state.left_count());
  if (!state.choice || state.now_in != chief_phase::collecting || state.needed <= count) return;
  state.needed = count;
  for (const auto& accumulator : state.config.accumulators)
    self->send(accumulator, make_cancel_takes(count, state.step));
}

// True if it was there, or was still to come: another may say that it never will.
bool remove(chief_state& state, uint32_t index) {
  if (auto left = state.live.find(index); left != state.live.end()) {
    state.index_of.erase(left->second.id());
    state.live.erase(left);
  } else if (index < state.has_come.size() && !state.has_come[index]) {
    state.has_come[index] = true;
    --state.expected;
  } else {
    return false;
  }
  state.given_up.insert(index);
  return true;
}

// The step goes on if it can end; the watch takes it back if it does not.
void stop_for_loss(chief_pointer self, const lost_replica& lost) {
  auto& state = self->state;
  if (state.stop_reason) return;
  state.stop_reason
    = error{lost.reason.code, fmt::format("lost {}; the job stops for that", describe(lost))};
  if (!state.stop_asked) state.stop_asked = state.config.world->now();
  keep_deadlines(self);
}

void on_leave(chief_pointer self, uint32_t index, error reason) {
  auto& state = self->state;
  if (!remove(state, index)) return;
  tell_clocks(self, index);
  if (state.now_in == chief_phase::ending) return conclude_if_deserted(self);
  if (reason.code == errc::none)
    reason = {errc::user_code, "its function returned before the job was over"};
  if (reason.code == errc::unavailable && state.config.rejoin_patience > job_time{0}) {
    state.given_up.erase(index);
    state.awaited[index] = state.config.world->now();
    ++state.expected;
    keep_deadlines(self);
  }
  state.report.lost.push_back({index, std::move(reason)});
  const auto& lost = state.report.lost.back();
  if (state.config.on_trouble) state.config.on_trouble("lost " + describe(lost));
  if (state.config.stops_on_loss) return stop_for_loss(self, lost);
  if (!state.enough_live()) return finish_for_want_of_replicas(self, lost);
  if (state.config.on_warning)
    state.config.on_warning(fmt::format("lost {}; {}", describe(lost), state.prospects()));
  need_no_more_than_are_left(self);
}

// Their mirrors hold the variables, so nothing is lost but the next time.
void on_owners_lost(chief_pointer self, const msg<wire::OwnersLost>& lost) {
  auto& state = self->state;
  if (!is_training(state)) return;
  state.has_lost_owners = true;
  std::string reason = lost.reader().getReason();
  if (state.config.on_trouble) state.config.on_trouble(reason);
  if (state.config.on_warning) state.config.on_warning(reason + "; the job goes on");
}

void on_owners_mirrored(chief_pointer self, const msg<wire::OwnersMirrored>& told) {
  const auto& state = self->state;
  if (is_training(state) && state.config.on_warning)
    state.config.on_warning(told.reader().getReason());
}

void on_stop(chief_pointer self, const msg<wire::StopJob>& stop) {
  auto& state = self->state;
  if (!is_training(state) || state.report.stopped) return;
  state.report.stopped = stop.reader().getReason();
  if (!state.stop_asked) state.stop_asked = state.config.world->now();
  keep_deadlines(self);
}

// Replicas that were awaited long enough are awaited no more.
void give_up_awaited(chief_pointer self) {
  auto& state = self->state;
  auto patience = state.config.rejoin_patience;
  const auto awaited = state.awaited;
  for (auto [index, since] : awaited) {
    if (state.config.world->now() - since <= patience) continue;
    state.give_up(index);
    if (!state.enough_live())
      return finish_for_want_of_replicas(
        self, {index,
               {errc::unavailable, fmt::format("was awaited for {:.1f} s after its node "
                                               "was gone",
                                               seconds(patience))}});
    need_no_more_than_are_left(self);
  }
}

// ---- the watch: every wait has an end, and names what is missing ----

// No accumulator is to be behind the others for ever, for parts of gradients that never come.
void do_without(chief_pointer self, const std::vector<accumulator_progress>& progress,
                const std::vector<uint32_t>& lacking) {
  const auto& config = self->state.config;
  for (size_t i = 0; i < lacking.size(); ++i) {
    if (lacking[i] == 0) continue;
    self->send(config.accumulators[i], make_count_missing(lacking[i], progress[i].step));
    if (config.on_warning)
      config.on_warning(
        fmt::format("'{}' does without {} gradients that lost replicas gave only in part",
                    config.variables[i], lacking[i]));
  }
}

// A report may still be on its way from another node. What an accumulator answers comes after what
// it has reported: so when all have answered and the step is still open, no report will come.
void confirm_stall(chief_pointer self, uint32_t tokens) {
  auto& state = self->state;
  auto missing = std::make_shared<size_t>(state.config.accumulators.size());
  auto progress = std::make_shared<std::vector<accumulator_progress>>(*missing);
  for (size_t i = 0; i < progress->size(); ++i)
    self
      ->request(state.config.accumulators[i], caf::infinite, // the watch keeps the deadline
                make_read_accumulator())
      .then(
        [self, missing, progress, i, tokens,
         step = state.step](const msg<wire::AccumulatorStatus>& said) {
          const auto& now = self->state;
          auto is_open = now.now_in == chief_phase::collecting && now.step == step;
          (*progress)[i] = {said.reader().getStep(), said.reader().getAccumulated()};
          if (--*missing > 0 || !is_open) return;
          auto lacking = now.lost_parts(*progress);
          if (!lacking.empty()) return do_without(self, *progress, lacking);
          now.stop_asked ? take_step_back(self) : finish(self, now.stall(tokens));
        },
        [self](const caf::error& reason) { finish(self, from_caf(reason)); });
}

void look(chief_pointer self, const msg<wire::QueueStatus>& status) {
  auto& state = self->state;
  if (state.now_in != chief_phase::collecting || state.taken_back) return;
  auto waiting = status.reader().getWaiting();
  auto tokens = status.reader().getTokens();
  if (state.finds_stall({waiting.begin(), waiting.end()})) return confirm_stall(self, tokens);
  auto late = state.config.world->now() - state.step_began;
  if (late <= state.config.deadline / 6) return;
  auto who = state.missing({waiting.begin(), waiting.end()});
  if (late > state.config.deadline)
    return finish(self, error{errc::deadline_exceeded,
                              fmt::format("step {} is not over after {:.1f} s; still missing: {}",
                                          state.step + 1, seconds(late), who)});
  if (!std::exchange(state.warned, true) && state.config.on_warning)
    state.config.on_warning(fmt::format("step {} takes {:.1f} s so far; still waiting for {}",
                                        state.step + 1, seconds(late), who));
}

// ---- the beginning ----

void begin(chief_pointer self) {
  auto& state = self->state;
  for (auto index : state.config.absent)
    tell_clocks(self, index);
  if (state.config.resumes) return settle(self);
  if (auto count = state.config.sync.first_tokens(); count > 0)
    self->send(state.config.tokens, make_put_tokens(state.step, count));
  begin_step(self);
}

void look_at(chief_pointer self, job_time time) {
  auto& planned = self->state.planned_looks;
  if (!planned.empty() && *planned.begin() <= time) return;
  planned.insert(time);
  self->delayed_send(self, time - self->state.config.world->now(), watch_tick{});
}

// Something has begun that is to be over in time.
void keep_deadlines(chief_pointer self) {
  auto first = self->state.first_deadline(self->state.config.world->now());
  if (first < job_time::max()) look_at(self, first);
}

void watch(chief_pointer self) {
  auto& state = self->state;
  state.planned_looks.erase(state.planned_looks.begin());
  auto now = state.config.world->now();
  if (is_training(state) && state.stop_asked
      && now - *state.stop_asked > state.config.stop_patience)
    take_step_back(self);
  if (is_training(state)) give_up_awaited(self);
  if (auto silent = state.silent_owners(now)) finish(self, std::move(silent));
  if (state.now_in == chief_phase::saving && now - state.phase_began > state.config.deadline)
    finish(self, error{errc::deadline_exceeded,
                       fmt::format("{} of those asked for a checkpoint of step {} did not answer",
                                   state.snapshot_missing, state.step)});
  if (state.now_in == chief_phase::ending
      && now - state.phase_began > state.config.leave_deadline) {
    for (const auto& [index, replica] : state.live)
      state.report.lost.push_back(
        {index, {errc::deadline_exceeded, "did not leave when the job was over"}});
    return conclude(self);
  }
  if (state.now_in == chief_phase::collecting)
    self
      ->request(state.config.tokens, caf::infinite, // the queue answers at once, or is gone
                make_read_queue_status())
      .then([self](const msg<wire::QueueStatus>& status) { look(self, status); },
            [self](const caf::error& reason) { finish(self, from_caf(reason)); });
  look_at(self, state.look_after(now));
}

} // namespace

chief_actor::behavior_type chief(chief_pointer self, chief_config config) {
  auto& state = self->state;
  state.config = std::move(config);
  state.step = state.config.first_step;
  const auto& sync = state.config.sync;
  state.has_come.assign(sync.total_num_replicas, false);
  for (auto index : state.config.absent)
    if (index < sync.total_num_replicas) state.has_come[index] = true;
  state.given_up.insert(state.config.absent.begin(), state.config.absent.end());
  state.expected = static_cast<uint32_t>(std::ranges::count(state.has_come, false));
  state.ledger = step_ledger{state.config.accumulators.size(), asynchronous_rule::patience(sync)};
  if (sync.dynamic) state.choice.emplace(*sync.dynamic, state.config.learning_rate);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  begin(self);
  look_at(self, state.look_after(state.config.world->now()));
  return {
    [self](const msg<wire::JoinJob>& join) { on_join(self, join.reader().getReplica()); },
    [self](const msg<wire::Farewell>& farewell) {
      auto said = farewell.reader();
      on_leave(self, said.getReplica(), {static_cast<errc>(said.getCode()), said.getReason()});
    },
    [self](const msg<wire::TakenGradient>& report) { on_taken(self, report); },
    [self](const msg<wire::StopJob>& stop) { on_stop(self, stop); },
    [self](const msg<wire::OwnersLost>& lost) { on_owners_lost(self, lost); },
    [self](const msg<wire::OwnersMirrored>& told) { on_owners_mirrored(self, told); },
    [self](watch_tick) { watch(self); },
    [self](moment_over) { on_settled(self); },
  };
}

} // namespace troupe
