// SPDX-License-Identifier: Apache-2.0
// The directory: one phase after the other, for each variable.
#include "actors/directory.hpp"

#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

using self_pointer = observed_pointer<directory_actor, directory_state>;
using phase = directory_state::phase;

// Actors of one process are lost one after the other; all are told of at once.
constexpr auto gather_time = std::chrono::milliseconds{100};

void tell_followers(self_pointer self, size_t index);

// A follower that is gone has nothing left to give.
void tell(self_pointer self, size_t index, const stand_in_actor& who) {
  auto& entry = self->state.variables[index];
  ++entry.missing;
  auto done = [self, index] {
    auto& entry = self->state.variables[index];
    if (--entry.missing > 0) return;
    if (entry.now_in == phase::gathering) {
      entry.now_in = phase::closing;
      tell_followers(self, index);
    } else if (entry.now_in == phase::closing) {
      entry.now_in = phase::moved;
    }
  };
  self
    ->request(who, caf::infinite, entry.word) // it answers, or is gone
    .then([done](const msg<wire::OwnerFollowed>&) { done(); },
          [done](const caf::error&) { done(); });
}

// Those whose turn it is; if there are none, it is the next ones'.
void tell_followers(self_pointer self, size_t index) {
  auto& entry = self->state.variables[index];
  auto closes_steps = entry.now_in == phase::closing;
  for (const auto& one : self->state.followers)
    if (one.variable == index && one.closes_steps == closes_steps) tell(self, index, one.who);
  if (entry.missing > 0) return;
  if (closes_steps) {
    entry.now_in = phase::moved;
  } else {
    entry.now_in = phase::closing;
    tell_followers(self, index);
  }
}

// Those who want to know who holds the variable, if that is certain. Who is to be told that it is
// the mirror has been told before.
void answer_followers(directory_state& state, size_t index) {
  if (state.variables[index].now_in == phase::asking) return;
  for (auto& one : state.followers)
    if (one.variable == index)
      if (auto asks = std::exchange(one.asks, std::nullopt)) asks->deliver(make_owner_followed());
}

void gather(self_pointer self, size_t index) {
  self->state.variables[index].now_in = phase::gathering;
  tell_followers(self, index);
  answer_followers(self->state, index);
}

void lose(self_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  entry.now_in = phase::lost;
  entry.word
    = make_nobody_took_over({reason.code, fmt::format("the owner of '{}' is gone: {}",
                                                      entry.who.variable, reason.message)});
  for (const auto& one : self->state.followers)
    if (one.variable == index) tell(self, index, one.who);
  answer_followers(self->state, index);
}

accumulator_actor accumulator_of(const directory_state& state, size_t index) {
  if (!state.job || index >= state.job->accumulators.size()) return {};
  return state.job->accumulators[index];
}

// What the accumulator answers says that it knows the step.
void on_took_over(self_pointer self, size_t index, const msg<wire::TookOver>& word) {
  auto& state = self->state;
  auto& entry = state.variables[index];
  if (entry.now_in != phase::asking) return;
  entry.word = word;
  state.moved.push_back(entry.who.variable);
  auto accumulator = accumulator_of(state, index);
  if (!accumulator) return gather(self, index);
  auto closed = read_closed_step(word.reader().getClosed());
  self->send(accumulator, make_set_step(closed ? closed->step + 1 : state.job->first_step));
  self
    ->request(accumulator, caf::infinite, make_read_accumulator()) // it answers, or is gone
    .then([self, index](const msg<wire::AccumulatorStatus>&) { gather(self, index); },
          [self, index](const caf::error& reason) { lose(self, index, from_caf(reason)); });
}

void take_over(self_pointer self, size_t index) {
  auto& entry = self->state.variables[index];
  entry.now_in = phase::asking;
  self
    ->request(entry.who.mirror, caf::infinite, make_take_over()) // it answers, or is gone
    .then([self, index](const msg<wire::TookOver>& word) { on_took_over(self, index, word); },
          [self, index](const caf::error& reason) { lose(self, index, from_caf(reason)); });
}

void on_owner_lost(self_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  if (entry.now_in != phase::held) return;
  entry.is_mirrored ? take_over(self, index) : lose(self, index, reason);
}

void on_mirror_lost(self_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  entry.is_mirrored = false;
  if (entry.now_in > phase::held && entry.now_in < phase::lost) lose(self, index, reason);
}

void on_down(self_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto reason = from_caf(down.reason);
  auto was_known = false;
  std::erase_if(state.followers, [&](const auto& one) { return one.who == down.source; });
  for (size_t index = 0; index < state.variables.size(); ++index) {
    auto& entry = state.variables[index];
    auto is_owner = entry.who.owner == down.source;
    auto is_mirror = entry.who.mirror == down.source;
    if (is_owner) on_owner_lost(self, index, reason);
    if (is_mirror) on_mirror_lost(self, index, reason);
    if (is_owner || is_mirror) state.alone.push_back(entry.who.variable);
    was_known = was_known || is_owner || is_mirror;
  }
  if (!was_known) return;
  state.reasons.insert(reason.message);
  self->delayed_send(self, gather_time, watch_tick{});
}

void tell_of_losses(self_pointer self) {
  auto& state = self->state;
  if (state.is_moving()) return self->delayed_send(self, gather_time, watch_tick{});
  auto line = state.tell_losses();
  if (state.job && !line.empty()) self->send(state.job->chief, make_owners_lost(line));
}

void watch(self_pointer self, const watch_owner& who) {
  self->state.variables.push_back({.who = who});
  self->monitor(who.owner);
  self->monitor(who.mirror);
  answer_followers(self->state, self->state.variables.size() - 1);
}

// It may know of a variable before we do.
caf::result<msg<wire::OwnerFollowed>> follow(self_pointer self, wire::FollowOwner::Reader said) {
  auto& state = self->state;
  auto index = said.getVariable();
  auto who = caf::actor_cast<stand_in_actor>(self->current_sender());
  auto promise = self->make_response_promise<msg<wire::OwnerFollowed>>();
  self->monitor(who);
  state.followers.push_back({index, who, said.getClosesSteps(), promise});
  if (index >= state.variables.size()) return promise;
  if (state.variables[index].now_in > phase::asking) tell(self, index, who);
  answer_followers(state, index);
  return promise;
}

std::string names(const std::vector<std::string>& variables) {
  return fmt::format("'{}'", fmt::join(variables, "', '"));
}

} // namespace

bool directory_state::is_moving() const {
  return std::ranges::any_of(variables, [](const entry& one) {
    return one.now_in > phase::held && one.now_in < phase::moved;
  });
}

std::string directory_state::tell_losses() {
  auto why = std::exchange(reasons, {});
  auto taken = std::exchange(moved, {});
  auto single = std::exchange(alone, {});
  std::erase_if(single, [this](const std::string& name) {
    auto found
      = std::ranges::find(variables, name, [](const entry& one) { return one.who.variable; });
    return found == variables.end() || found->now_in == phase::lost;
  });
  if (single.empty()) return {};
  auto mirrors
    = taken.empty() ? std::string{} : fmt::format("{} held by mirrors now; ", names(taken));
  return fmt::format("{}: {}held once from now on: {}", fmt::join(why, "; "), mirrors,
                     names(single));
}

directory_actor::behavior_type directory(self_pointer self) {
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  return {
    [self](const watch_owner& who) { watch(self, who); },
    [self](const watch_job& job) { self->state.job = job; },
    [self](const msg<wire::FollowOwner>& said) { return follow(self, said.reader()); },
    [self](watch_tick) { tell_of_losses(self); },
  };
}

} // namespace troupe
