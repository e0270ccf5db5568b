// SPDX-License-Identifier: Apache-2.0
// The directory's handlers, by the phases of a variable.
#include "actors/replication/directory.hpp"

#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

using directory_pointer = observed_pointer<directory_actor, directory_state>;
using directory_phase = directory_state::phase;

// Actors of one process are lost one after the other; the chief hears of all at once.
constexpr auto gather_time = std::chrono::milliseconds{100};

void go_on(directory_pointer self, size_t index);

// Watches an actor that has to do with a variable.
template <class Actor>
void remember(directory_pointer self, const Actor& actor, size_t index) {
  self->monitor(actor);
  self->state.concerned.emplace(actor.address(), index);
}

// Tells a follower of the new holder, or that there is none. A follower that is gone need not
// answer.
void tell(directory_pointer self, size_t index, const failover_client_actor& follower) {
  auto& entry = self->state.variables[index];
  ++entry.missing;
  auto done = [self, index, term = entry.term] {
    auto& entry = self->state.variables[index];
    if (entry.term == term && --entry.missing == 0) go_on(self, index);
  };
  self
    ->request(follower, caf::infinite, entry.announcement) // it answers, or is gone
    .then([done](const msg<wire::OwnerFollowed>&) { done(); },
          [done](const caf::error&) { done(); });
}

// Tells the followers of this phase; if there are none, the next phase comes.
void tell_followers(directory_pointer self, size_t index) {
  auto& entry = self->state.variables[index];
  auto closes_steps = entry.now_in == directory_phase::closing;
  for (const auto& follower : self->state.followers[index])
    if (follower.closes_steps == closes_steps) tell(self, index, follower.client);
  if (entry.missing == 0) go_on(self, index);
}

// Lets an owner that offers itself begin as the mirror, if the holder is certain and lacks one.
void take_in(directory_state& state, size_t index) {
  auto& entry = state.variables[index];
  if (entry.now_in != directory_phase::held || entry.mirror || !entry.offer) return;
  if (entry.offer->is_mirrors != entry.lacks_mirrors()) return; // the holder's next life
  auto newcomer = *std::exchange(entry.offer, std::nullopt);
  entry.mirror = newcomer.owner;
  entry.is_filled = false;
  newcomer.may_begin.deliver(make_mirror_wanted(++entry.mirror_number));
}

// All followers that were told in this phase have answered.
void go_on(directory_pointer self, size_t index) {
  auto& entry = self->state.variables[index];
  if (entry.now_in == directory_phase::gathering) {
    entry.now_in = directory_phase::closing;
    tell_followers(self, index);
  } else if (entry.now_in == directory_phase::closing) {
    entry.now_in = directory_phase::held;
    take_in(self->state, index);
  }
}

void answer(directory_state::follower& follower) {
  if (auto promise = std::exchange(follower.promise, std::nullopt))
    promise->deliver(make_client_known(follower.number));
}

// Answers the followers that ask for the holder, if it is certain. Followers that must be told of a
// new holder have been told before.
void answer_followers(directory_state& state, size_t index) {
  if (state.variables[index].now_in == directory_phase::asking) return;
  for (auto& follower : state.followers[index])
    answer(follower);
}

void gather(directory_pointer self, size_t index) {
  self->state.variables[index].now_in = directory_phase::gathering;
  tell_followers(self, index);
  answer_followers(self->state, index);
}

void lose(directory_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  if (entry.now_in == directory_phase::lost) return;
  entry.now_in = directory_phase::lost;
  entry.announcement = make_nobody_took_over(
    {reason.code, fmt::format("the owner of '{}' is gone: {}", entry.variable, reason.message)});
  for (const auto& follower : self->state.followers[index])
    tell(self, index, follower.client);
  answer_followers(self->state, index);
}

void on_took_over(directory_pointer self, size_t index, const msg<wire::TookOver>& announcement) {
  auto& entry = self->state.variables[index];
  if (entry.now_in != directory_phase::asking) return;
  entry.holder = std::exchange(entry.mirror, nullptr);
  entry.announcement = announcement;
  self->state.moved.push_back(entry.variable);
  gather(self, index);
}

// Asks the mirror to take over. It knows best whether it has its variable: it may have been told
// everything although its message about that is still on its way.
void take_over(directory_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  entry.now_in = directory_phase::asking;
  entry.missing = 0;
  entry.misses.reset();
  self
    ->request(entry.mirror, caf::infinite, make_take_over(++entry.term)) // it answers, or is gone
    .then([self, index](
            const msg<wire::TookOver>& announcement) { on_took_over(self, index, announcement); },
          [self, index, reason](const caf::error&) { lose(self, index, reason); });
}

void on_holder_lost(directory_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  if (entry.now_in == directory_phase::held && entry.mirror)
    take_over(self, index, reason);
  else if (entry.now_in != directory_phase::asking)
    lose(self, index, reason);
}

void on_mirror_lost(directory_pointer self, size_t index, const error& reason) {
  auto& entry = self->state.variables[index];
  entry.mirror = nullptr;
  if (auto waits = std::exchange(entry.misses, std::nullopt)) waits->deliver(make_owner_followed());
  if (entry.now_in == directory_phase::asking) return lose(self, index, reason);
  take_in(self->state, index);
}

// @returns Whether a variable is held fewer times than before. A mirror that is lost while it is
// being filled does not count.
bool on_gone(directory_pointer self, size_t index, const caf::actor_addr& actor,
             const error& reason) {
  auto& entry = self->state.variables[index];
  if (entry.offer && entry.offer->owner == actor) entry.offer.reset();
  auto is_holder = entry.holder == actor;
  auto is_mirror = entry.mirror == actor;
  auto is_missed = is_holder || (is_mirror && entry.is_filled);
  if (is_holder) on_holder_lost(self, index, reason);
  if (is_mirror) on_mirror_lost(self, index, reason);
  if (is_missed) self->state.unmirrored.push_back(entry.variable);
  return is_missed;
}

void on_down(directory_pointer self, const caf::down_msg& down) {
  auto& state = self->state;
  auto reason = from_caf(down.reason);
  auto is_missed = false;
  for (auto index : state.forget(down.source)) {
    std::erase_if(state.followers[index],
                  [&](const auto& follower) { return follower.client == down.source; });
    if (index < state.variables.size())
      is_missed = on_gone(self, index, down.source, reason) || is_missed;
  }
  if (!is_missed) return;
  state.reasons.insert(reason.message);
  self->delayed_send(self, gather_time, watch_tick{});
}

void tell_chief(directory_pointer self) {
  auto& state = self->state;
  if (state.is_moving() || (state.is_filling() && !state.mirrored_again.empty()))
    return self->delayed_send(self, gather_time, watch_tick{});
  auto lost = state.tell_losses();
  auto back = state.tell_returns();
  if (!state.job) return;
  if (!lost.empty()) self->send(state.job->watcher, make_owners_lost(lost));
  if (!back.empty()) self->send(state.job->watcher, make_owners_mirrored(back));
}

// Gives up the processes of mirrors that their holders cannot reach, though the directory can: else
// the holders would wait for ever. If two processes miss each other, one stays.
void part_with_missed(directory_state& state) {
  for (const auto& entry : state.variables) {
    if (!entry.misses || state.parted.contains(entry.holders_process())) continue;
    if (state.parted.insert(entry.mirrors_process()).second && state.part_with)
      state.part_with(entry.mirrors_process(), entry.holders_process());
  }
}

// A holder cannot reach its mirror. Mostly the directory is about to hear of the loss itself, or
// has heard of it long ago.
caf::result<msg<wire::OwnerFollowed>> on_missed(directory_pointer self, size_t index,
                                                uint32_t mirror) {
  auto& entry = self->state.variables[index];
  if (entry.holder != self->current_sender())
    return to_caf({errc::cancelled, fmt::format("'{}' is held by another", entry.variable)});
  if (!entry.mirror || entry.mirror_number != mirror) return make_owner_followed();
  entry.misses = self->make_response_promise<msg<wire::OwnerFollowed>>();
  self->delayed_send(self, gather_time, watch_tick{});
  return *entry.misses;
}

caf::result<msg<wire::OwnerFollowed>> on_filled(directory_pointer self, size_t index) {
  auto& state = self->state;
  auto& entry = state.variables[index];
  if (entry.mirror == self->current_sender() && !std::exchange(entry.is_filled, true)) {
    state.mirrored_again.push_back(entry.variable);
    self->delayed_send(self, gather_time, watch_tick{});
  }
  return make_owner_followed();
}

caf::result<msg<wire::OwnerFollowed>> on_offer(directory_pointer self,
                                               wire::OfferMirror::Reader offer) {
  auto& state = self->state;
  auto index = offer.getVariable();
  if (index >= state.variables.size())
    return to_caf({errc::not_found, fmt::format("there is no variable {}", index)});
  if (offer.getIsMissed()) return on_missed(self, index, offer.getMirror());
  if (offer.getIsFilled()) return on_filled(self, index);
  auto owner = caf::actor_cast<replicated_owner_actor>(self->current_sender());
  auto& entry = state.variables[index];
  if (entry.holder == owner || entry.mirror == owner)
    return to_caf(
      {errc::failed_precondition,
       fmt::format("the process that offers to hold '{}' holds it already", entry.variable)});
  auto promise = self->make_response_promise<msg<wire::OwnerFollowed>>();
  remember(self, owner, index);
  entry.offer = {owner, offer.getIsMirrors(), promise};
  state.parted.erase(entry.processes[offer.getIsMirrors() ? 1 : 0]);
  take_in(state, index);
  return promise;
}

void watch(directory_pointer self, const watch_owner& owner) {
  auto index = self->state.variables.size();
  self->state.variables.push_back({.variable = owner.variable,
                                   .holder = owner.owner,
                                   .mirror = owner.mirror,
                                   .processes = owner.processes});
  remember(self, owner.owner, index);
  remember(self, owner.mirror, index);
  answer_followers(self->state, index);
}

// Adds a failover client, which may know of a variable before the directory does.
caf::result<msg<wire::OwnerFollowed>> follow(directory_pointer self,
                                             wire::FollowOwner::Reader request) {
  auto& state = self->state;
  auto index = request.getVariable();
  auto client = caf::actor_cast<failover_client_actor>(self->current_sender());
  auto promise = self->make_response_promise<msg<wire::OwnerFollowed>>();
  remember(self, client, index);
  auto& added = state.followers[index].emplace_back(
    directory_state::follower{client, request.getClosesSteps(), ++state.follower_count, promise});
  if (index >= state.variables.size()) return promise;
  const auto& entry = state.variables[index];
  if (entry.now_in == directory_phase::asking) return promise;
  if (!entry.announcement.is_empty()) tell(self, index, client);
  answer(added);
  return promise;
}

std::string names(const std::vector<std::string>& variables) {
  return fmt::format("'{}'", fmt::join(variables, "', '"));
}

} // namespace

std::set<size_t> directory_state::forget(const caf::actor_addr& actor) {
  std::set<size_t> indices;
  auto [begin, end] = concerned.equal_range(actor);
  for (auto item = begin; item != end; ++item)
    indices.insert(item->second);
  concerned.erase(begin, end);
  return indices;
}

bool directory_state::is_moving() const {
  return std::ranges::any_of(variables, [](const entry& variable) {
    return variable.now_in != directory_phase::held && variable.now_in != directory_phase::lost;
  });
}

bool directory_state::is_filling() const {
  return std::ranges::any_of(
    variables, [](const entry& variable) { return variable.mirror && !variable.is_filled; });
}

std::string directory_state::tell_losses() {
  auto why = std::exchange(reasons, {});
  auto taken = std::exchange(moved, {});
  auto single = std::exchange(unmirrored, {});
  std::erase_if(single, [this](const std::string& name) {
    auto found = std::ranges::find(variables, name, &entry::variable);
    return found == variables.end() || found->now_in == directory_phase::lost;
  });
  if (single.empty()) return {};
  auto mirrors
    = taken.empty() ? std::string{} : fmt::format("{} held by mirrors now; ", names(taken));
  return fmt::format("{}: {}held once from now on: {}", fmt::join(why, "; "), mirrors,
                     names(single));
}

std::string directory_state::tell_returns() {
  auto twice = std::exchange(mirrored_again, {});
  return twice.empty() ? std::string{} : "held twice again: " + names(twice);
}

directory_actor::behavior_type directory(directory_pointer self,
                                         directory_state::give_up_process part_with) {
  self->state.part_with = std::move(part_with);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  return {
    [self](const watch_owner& owner) { watch(self, owner); },
    [self](const watch_job& job) { self->state.job = job; },
    [self](const msg<wire::FollowOwner>& request) { return follow(self, request.reader()); },
    [self](const msg<wire::OfferMirror>& request) { return on_offer(self, request.reader()); },
    [self](watch_tick) {
      part_with_missed(self->state);
      tell_chief(self);
    },
  };
}

} // namespace troupe
