// SPDX-License-Identifier: Apache-2.0
// The roll call's handlers: members that enter, leave, are late or are lost.
#include "actors/training/roll_call.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/training/agreement.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>

namespace troupe {

namespace {

using roll_call_pointer = observed_pointer<roll_call_actor, roll_call_state>;
using roll_call_phase = roll_call_state::phase;
using begins_promise = caf::typed_response_promise<msg<wire::JobBegins>>;
using ends_promise = caf::typed_response_promise<msg<wire::JobEnded>>;

// More than any clock shows; less than would overflow when times are added to it.
constexpr job_time clock_max = job_time::max() / 2;

const error never_in{errc::failed_precondition, "it has no part in this job"};

void enter(roll_call_state& state, roll_call_phase next) {
  state.now_in = next;
  state.phase_began = state.config.world->now();
}

// Answers a member's request, if it waits for an answer.
template <class Promise, class Answer>
void answer(std::optional<Promise>& request, const Answer& content) {
  if (auto promise = std::exchange(request, std::nullopt)) promise->deliver(content);
}

// ---- the beginning ----

void refuse(roll_call_state& state, error reason) {
  if (state.now_in != roll_call_phase::entering) return;
  enter(state, roll_call_phase::refused);
  state.config.on_entered(tl::unexpected<error>(std::move(reason)));
}

// Whether the last call goes on for members that are missing. It ends with the deadline at the
// latest.
bool is_awaiting_rest(roll_call_state& state) {
  auto now = state.config.world->now();
  auto missing = state.missing();
  auto last_call = state.config.optional.last_call;
  if (missing.empty()) return false;
  if (!state.enough_since && state.config.on_waiting)
    state.config.on_waiting(
      fmt::format("enough replicas are there; the job waits {:.1f} s more for {} to enter",
                  seconds(last_call), fmt::join(missing, ", ")));
  state.enough_since = state.enough_since.value_or(now);
  return now - *state.enough_since < last_call
         && now - state.phase_began <= state.config.enter_deadline;
}

void begin_if_enough_are_there(roll_call_state& state) {
  if (state.now_in != roll_call_phase::entering) return;
  if (!state.may_begin()) return state.enough_since.reset();
  if (is_awaiting_rest(state)) return;
  roll_called called{.clock = state.config.world->now() + state.ahead};
  for (const auto& [index, name] : state.config.members)
    if (!state.is_there(index)) called.absent.emplace(index, name);
  enter(state, roll_call_phase::entered);
  state.config.on_entered(std::move(called));
}

error why_it_did_not_begin(const roll_call_state& state) {
  return state.ending.failure.value_or(
    error{errc::failed_precondition, "the job was over before it had begun"});
}

// Lets in a member of a job that has begun, or has gone on, without it.
void let_in(roll_call_state& state, roll_call_state::presence& member) {
  auto now = state.config.world->now();
  answer(member.begins, make_job_begins(state.first_step, now, {}, member.life));
}

// Refuses a member that the others do not wait for.
void keep_out(roll_call_state::presence& member, const error& why) {
  member.is_lost = true;
  answer(member.begins, to_caf(why));
}

caf::result<msg<wire::JobBegins>> on_enter(roll_call_pointer self,
                                           const msg<wire::EnterJob>& request) {
  auto& state = self->state;
  auto newcomer = read_enter_job(request.reader());
  if (!state.config.members.contains(newcomer.member)) return to_caf(unknown_member());
  auto sender = self->current_sender();
  auto promise = self->make_response_promise<msg<wire::JobBegins>>();
  self->monitor(caf::actor_cast<caf::actor_addr>(sender));
  auto& member = state.members[newcomer.member];
  auto is_late = state.now_in == roll_call_phase::playing;
  // A life above 0 tells replicas that they begin in the midst of a job.
  auto begins_anew = is_late || member.handle;
  auto life = begins_anew ? std::max(member.life, state.config.lives_before) + 1 : 0;
  member = {.handle = sender, .life = life, .begins = promise};
  auto clock = std::min(newcomer.clock, clock_max);
  state.ahead = std::max(state.ahead, clock - state.config.world->now());
  auto refusal = state.check(newcomer);
  if (!refusal && state.config.on_here)
    state.config.on_here(newcomer.member, caf::actor_cast<member_actor>(sender));
  if (state.now_in >= roll_call_phase::leaving)
    answer(member.begins, to_caf(why_it_did_not_begin(state)));
  else if (refusal && state.now_in >= roll_call_phase::entered)
    keep_out(member, *refusal); // the others begin, or have begun, without it
  else if (is_late)
    let_in(state, member);
  else if (refusal)
    refuse(state, std::move(*refusal));
  else
    begin_if_enough_are_there(state);
  return promise;
}

void on_begins(roll_call_state& state, const msg<wire::JobBegins>& begins) {
  if (state.now_in != roll_call_phase::entered) return;
  enter(state, roll_call_phase::playing);
  state.first_step = begins.reader().getFirstStep();
  for (auto& [index, member] : state.members)
    answer(member.begins, begins);
}

// ---- the end ----

void close_if_all_have_ended(roll_call_pointer self) {
  auto& state = self->state;
  auto is_there = [](const auto& one) { return !one.second.is_lost; };
  if (state.now_in != roll_call_phase::closing || std::ranges::any_of(state.members, is_there))
    return;
  enter(state, roll_call_phase::over);
  state.config.on_left(state.ending);
  self->quit();
}

void leave_if_all_want_to(roll_call_pointer self) {
  auto& state = self->state;
  if (state.now_in != roll_call_phase::leaving || !state.missing().empty()) return;
  enter(state, roll_call_phase::closing);
  auto ended = make_job_ended(state.ending);
  for (auto& [index, member] : state.members)
    answer(member.leaves, ended);
  close_if_all_have_ended(self);
}

void on_ended(roll_call_pointer self, const msg<wire::JobEnded>& ended) {
  auto& state = self->state;
  if (state.now_in >= roll_call_phase::leaving) return;
  refuse(state, {errc::cancelled, "the job was over before it had begun"});
  enter(state, roll_call_phase::leaving);
  state.ending = read_job_ended(ended.reader());
  for (auto& [index, member] : state.members) {
    answer(member.begins, to_caf(why_it_did_not_begin(state)));
    answer(member.ends, ended);
  }
  leave_if_all_want_to(self);
}

caf::result<msg<wire::JobEnded>> on_await_end(roll_call_pointer self, uint32_t index) {
  auto& state = self->state;
  if (state.now_in >= roll_call_phase::leaving) return make_job_ended(state.ending);
  auto member = state.members.find(index);
  if (member == state.members.end()) return to_caf(unknown_member());
  auto promise = self->make_response_promise<msg<wire::JobEnded>>();
  member->second.ends = promise;
  return promise;
}

caf::result<msg<wire::JobEnded>> on_leave(roll_call_pointer self, uint32_t index) {
  auto& state = self->state;
  auto member = state.members.find(index);
  if (member == state.members.end()) return to_caf(unknown_member());
  if (state.now_in == roll_call_phase::playing && member->second.is_lost) return to_caf(never_in);
  auto promise = self->make_response_promise<msg<wire::JobEnded>>();
  member->second.leaves = promise;
  if (state.now_in == roll_call_phase::closing) // it is late, and the others have not waited
    answer(member->second.leaves, make_job_ended(state.ending));
  else
    leave_if_all_want_to(self);
  return promise;
}

// ---- members that are gone, and members that are late ----

void on_down(roll_call_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto is_gone = [&down](const auto& item) { return down.source == item.second.handle; };
  auto gone = std::ranges::find_if(state.members, is_gone);
  if (gone == state.members.end()) return;
  gone->second.is_lost = true;
  auto why = from_caf(down.reason);
  if (why.code != errc::unavailable) why = {errc::unavailable, "has left"};
  auto is_optional = state.config.optional.replicas.contains(gone->first);
  if (is_optional && state.now_in == roll_call_phase::entering)
    return begin_if_enough_are_there(state);
  if (state.now_in <= roll_call_phase::entered)
    refuse(state, {why.code, fmt::format("{} left before the job had begun: {}",
                                         state.name_of(gone->first), why.message)});
  if (state.now_in <= roll_call_phase::playing && state.config.on_lost)
    state.config.on_lost(gone->first, why);
  leave_if_all_want_to(self);
  close_if_all_have_ended(self);
}

// Tells the user, now and then, which members have not entered so far.
void tell_waiting(roll_call_state& state, job_time waited) {
  const auto& config = state.config;
  if (!config.on_waiting) return;
  if (!state.waiting) state.waiting.emplace(config.enter_deadline);
  auto awaited = fmt::format("{} to enter the job", fmt::join(state.missing(), ", "));
  if (auto line = state.waiting->due(waited, awaited)) config.on_waiting(*line);
}

// @param action The missing action of members: "enter" or "leave".
error late(const roll_call_state& state, job_time waited, const char* action) {
  return {errc::deadline_exceeded,
          fmt::format("waited {:.1f} s for {} to {} the job", seconds(waited),
                      fmt::join(state.missing(), ", "), action)};
}

void watch(roll_call_pointer self) {
  auto& state = self->state;
  const auto& config = state.config;
  auto waited = config.world->now() - state.phase_began;
  begin_if_enough_are_there(state);
  if (state.now_in == roll_call_phase::entering) tell_waiting(state, waited);
  if (state.now_in == roll_call_phase::entering && waited > config.enter_deadline)
    refuse(state, late(state, waited, "enter"));
  if (state.now_in >= roll_call_phase::leaving && waited > config.leave_deadline) {
    if (state.now_in == roll_call_phase::leaving && !state.ending.failure)
      state.ending.failure = late(state, waited, "leave");
    for (auto& [index, member] : state.members)
      member.is_lost = member.is_lost || !member.leaves || state.now_in == roll_call_phase::closing;
    leave_if_all_want_to(self);
    close_if_all_have_ended(self);
  }
  if (state.now_in != roll_call_phase::over)
    self->delayed_send(self, config.watch_period, watch_tick{});
}

} // namespace

std::optional<error> roll_call_state::check(const entrance& newcomer) const {
  const auto& name = name_of(newcomer.member);
  if (newcomer.seed != config.seed)
    return differing_setting(name, fmt::format("seed = {}", newcomer.seed),
                             fmt::format("seed = {}", config.seed));
  if (newcomer.replicas != config.replicas)
    return differing_setting(name, fmt::format("replicas = {}", newcomer.replicas),
                             fmt::format("replicas = {}", config.replicas));
  if (auto refusal = check_agreement(name, newcomer.agreement, config.agreement)) return refusal;
  if (now_in == roll_call_phase::playing && config.holders.contains(newcomer.member))
    return error{
      errc::failed_precondition,
      fmt::format("{} was lost, and with it variables that no other process holds: this job "
                  "cannot go on",
                  name)};
  return std::nullopt;
}

bool roll_call_state::is_there(uint32_t member) const {
  auto found = members.find(member);
  return found != members.end() && !found->second.is_lost;
}

bool roll_call_state::may_begin() const {
  uint32_t replicas = 0;
  for (const auto& [index, name] : config.members) {
    auto optional = config.optional.replicas.find(index);
    auto is_optional = optional != config.optional.replicas.end();
    if (!is_optional && !is_there(index)) return false;
    if (is_optional && is_there(index)) replicas += optional->second;
  }
  return replicas >= config.optional.replicas_min;
}

std::vector<std::string> roll_call_state::missing() const {
  std::vector<std::string> names;
  for (const auto& [index, name] : config.members) {
    auto is_missing = now_in < roll_call_phase::leaving
                        ? !is_there(index)
                        : is_there(index) && !members.at(index).leaves;
    if (is_missing) names.push_back(name);
  }
  return names;
}

roll_call_actor::behavior_type roll_call(roll_call_pointer self, roll_call_config config) {
  auto& state = self->state;
  state.config = std::move(config);
  enter(state, roll_call_phase::entering);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  watch(self);
  return {
    [self](const msg<wire::EnterJob>& request) { return on_enter(self, request); },
    [self](const msg<wire::AwaitEnd>& request) {
      return on_await_end(self, request.reader().getMember());
    },
    [self](const msg<wire::LeaveJob>& request) {
      return on_leave(self, request.reader().getMember());
    },
    [self](const msg<wire::JobBegins>& begins) { on_begins(self->state, begins); },
    [self](const msg<wire::JobEnded>& ended) { on_ended(self, ended); },
    [self](watch_tick) { watch(self); },
  };
}

} // namespace troupe
