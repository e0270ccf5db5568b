// SPDX-License-Identifier: Apache-2.0
// The variable owner: reading, choosing the optimizer, applying updates.
#include "actors/training/variable_owner.hpp"

#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using variable_owner_pointer = observed_pointer<replicated_owner_actor, variable_owner_state>;

const error taken_over{errc::cancelled, "its mirror has taken over"};

// ---- answering at the right place ----

void become_certain(variable_owner_state& state) {
  state.is_certain = true;
  for (const auto& answer : std::exchange(state.early, {}))
    answer();
}

// The last change that the mirror may not have, and that may be asked for again; null: there is
// none.
variable_owner_state::told_change* last_numbered(variable_owner_state& state) {
  auto is_numbered = [](const auto& change) { return change.is_numbered; };
  auto last = std::find_if(state.changes.rbegin(), state.changes.rend(), is_numbered);
  return last == state.changes.rend() ? nullptr : &*last;
}

// A change that the mirror does not have yet may be lost, and asked for again: a caller that is
// told of it before would know more than there is.
template <class Reply>
void deliver_after(variable_owner_state& state, caf::typed_response_promise<msg<Reply>> promise,
                   expected<msg<Reply>> answer) {
  auto* last = answer ? last_numbered(state) : nullptr;
  if (last == nullptr) {
    answer ? promise.deliver(std::move(*answer)) : promise.deliver(to_caf(answer.error()));
    return;
  }
  last->settle = [settle = std::move(last->settle), promise,
                  answer = std::move(*answer)](const std::optional<error>& refused) mutable {
    settle(refused);
    refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
  };
}

// A caller that asks another than the holder of the variable is told of the holder, and asks there.
template <class Reply, class Read>
expected<msg<Reply>> read_if_held(variable_owner_state& state, Read read) {
  if (state.holds()) return read(state);
  return fail(errc::unavailable,
              fmt::format("'{}' is held by another", state.config.variable.name));
}

// @param read `expected<msg<Reply>> read(variable_owner_state&)`.
template <class Reply, class Read>
caf::result<msg<Reply>> answer(variable_owner_pointer self, Read read) {
  auto& state = self->state;
  if (state.is_certain && last_numbered(state) == nullptr)
    return to_result(read_if_held<Reply>(state, read));
  auto promise = self->make_response_promise<msg<Reply>>();
  auto deliver = [self, promise, read] {
    deliver_after(self->state, promise, read_if_held<Reply>(self->state, read));
  };
  if (state.is_certain)
    deliver();
  else
    state.early.emplace_back(deliver);
  return promise;
}

// ---- telling the mirror ----

void go_on_alone(variable_owner_state& state) {
  state.mirror = nullptr;
  become_certain(state);
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(std::nullopt);
}

// Another holds the variable: what was changed here since is not part of it.
void step_down(variable_owner_state& state) {
  state.is_deposed = true;
  become_certain(state);
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(error{errc::unavailable, taken_over.message});
}

// Whether the mirror takes over, which is behind from now on, is not to be decided here.
void miss_mirror(variable_owner_pointer self, const replicated_owner_actor& mirror) {
  const auto& config = self->state.config;
  auto missed = make_miss_mirror(config.variable_index, self->state.mirror_number);
  self
    ->request(config.directory, caf::infinite, missed) // it answers, or the job is over
    .then(
      [self, mirror](const msg<wire::OwnerFollowed>&) {
        if (mirror == self->state.mirror) go_on_alone(self->state);
      },
      [self](const caf::error&) { step_down(self->state); });
}

// An owner that is refused by a mirror that holds the variable has lost it. The answer of a former
// mirror is late.
void on_made(variable_owner_pointer self, const replicated_owner_actor& mirror,
             const std::optional<error>& reason) {
  auto& state = self->state;
  if (mirror != state.mirror) return;
  if (reason) return reason->code == taken_over.code ? step_down(state) : miss_mirror(self, mirror);
  become_certain(state);
  auto first = std::move(state.changes.front());
  state.changes.pop_front();
  first.settle(std::nullopt);
  if (!state.changes.empty()) state.changes.front().tell();
}

template <class Reply, class Message>
void tell_mirror(variable_owner_pointer self, msg<Message> told,
                 std::function<void(const std::optional<error>&)> settle,
                 bool is_numbered = false) {
  auto tell = [self, mirror = self->state.mirror, told = std::move(told)] {
    self
      ->request(mirror, caf::infinite, told) // the mirror answers, or is gone
      .then([self, mirror](const msg<Reply>&) { on_made(self, mirror, std::nullopt); },
            [self, mirror](const caf::error& reason) { on_made(self, mirror, from_caf(reason)); });
  };
  self->state.changes.push_back({std::move(tell), std::move(settle), is_numbered});
  if (self->state.changes.size() == 1) self->state.changes.front().tell();
}

// The answer to a change that was made here, when the mirror has made it, too.
template <class Reply, class Message>
caf::result<msg<Reply>> mirrored(variable_owner_pointer self, const msg<Message>& told,
                                 expected<msg<Reply>> answer, bool is_numbered = false) {
  if (!answer || !self->state.mirror) return to_result(std::move(answer));
  auto promise = self->make_response_promise<msg<Reply>>();
  tell_mirror<Reply>(
    self, told,
    [promise, answer = std::move(*answer)](const auto& refused) mutable {
      refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
    },
    is_numbered);
  return promise;
}

bool is_former_owner(variable_owner_pointer self) {
  const auto& state = self->state;
  return state.has_taken_over
         && self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(state.config.mirrored);
}

// @param make A method of the state.
template <class Reply, class Message>
caf::result<msg<Reply>>
change_by(variable_owner_pointer self, const msg<Message>& wanted,
          expected<msg<Reply>> (variable_owner_state::*make)(const msg<Message>&)) {
  if (is_former_owner(self)) return to_caf(taken_over);
  auto& state = self->state; // GCC 12 takes it from a null `self` in the call, under sanitizers
  return mirrored(self, wanted, (state.*make)(wanted));
}

// Of a change that is asked for again the mirror is told again: it may not have it yet.
caf::result<msg<wire::VariableSnapshot>> change_by_hand(variable_owner_pointer self,
                                                        const msg<wire::ChangeVariable>& wanted) {
  if (is_former_owner(self)) return to_caf(taken_over);
  return mirrored(self, wanted, self->state.change_once(wanted), wanted.reader().hasId());
}

// The mirror is told what is fewer bytes; an update that is held has changed nothing yet.
caf::result<msg<wire::UpdateApplied>> apply(variable_owner_pointer self,
                                            const msg<wire::ApplyUpdate>& update) {
  auto& state = self->state;
  if (is_former_owner(self)) return to_caf(taken_over);
  auto answer = state.apply_once(update);
  if (!state.mirror || !answer || !state.closed || update.reader().getHold()
      || update.reader().hasId())
    return mirrored(self, update, std::move(answer), update.reader().hasId());
  auto outcome = state.told_state();
  auto is_smaller = outcome.reader().totalSize().wordCount < update.reader().totalSize().wordCount;
  return is_smaller ? mirrored(self, outcome, std::move(answer))
                    : mirrored(self, update, std::move(answer));
}

void tell_directory(variable_owner_pointer self);

// Only its owner tells a mirror what to hold, and only until it takes over: an owner that has begun
// a new life in the same place knows nothing of what has become of the variable.
caf::result<msg<wire::UpdateApplied>> repeat(variable_owner_pointer self,
                                             const msg<wire::MirrorState>& told) {
  const auto& state = self->state;
  auto is_owner
    = self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(state.config.mirrored);
  if (state.has_taken_over || !is_owner) return to_caf(taken_over);
  auto done = self->state.mirror_state(told);
  if (done) tell_directory(self);
  return to_result(std::move(done));
}

// The state comes last: with it the mirror may take over. Callers that wait for a former mirror,
// which is gone, wait no more.
void use(variable_owner_pointer self, const replicated_owner_actor& mirror, uint32_t number) {
  auto& state = self->state;
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(std::nullopt);
  state.mirror = mirror;
  state.mirror_number = number;
  auto nobody_waits = [](const std::optional<error>&) {};
  if (!state.optimizer.is_empty())
    tell_mirror<wire::OptimizerInUse>(self, state.optimizer, nobody_waits);
  if (!state.held.is_empty()) tell_mirror<wire::UpdateApplied>(self, state.held, nobody_waits);
  tell_mirror<wire::UpdateApplied>(self, state.told_state(), nobody_waits);
}

void repeat_to_sender(variable_owner_pointer self, uint32_t number) {
  if (self->state.holds())
    use(self, caf::actor_cast<replicated_owner_actor>(self->current_sender()), number);
}

void use(variable_owner_pointer self, const accumulator_actor& accumulator) {
  self->state.accumulator = accumulator;
  self
    ->request(accumulator, caf::infinite, make_read_accumulator()) // it stands in this process
    .then(
      [self](const msg<wire::AccumulatorStatus>& status) {
        self->state.first_step = status.reader().getStep();
      },
      [](const caf::error&) {});
}

// ---- coming back ----

template <class Then>
void offer(variable_owner_pointer self, const come_back& told, bool is_filled, Then then) {
  const auto& config = self->state.config;
  auto offered = make_offer_mirror(config.variable_index, told.is_mirrors, is_filled);
  self
    ->request(config.directory, caf::infinite, offered) // it answers, or the job is over
    .then([then](const msg<wire::OwnerFollowed>& said) { then(said.reader().getMirror()); },
          [](const caf::error&) {});
}

// A new life has known of no return yet, and has told the mirror what it began with.
void become_newcomer(variable_owner_state& state, const come_back& told) {
  state.mirror = nullptr;
  state.changes.clear();
  state.config.mirrored = told.other;
  state.returned = told;
  state.is_deposed = false;
  become_certain(state);
}

// An owner in its first life is refused, and stays what it is.
void return_as_mirror(variable_owner_pointer self, const come_back& told) {
  if (told.is_known) become_newcomer(self->state, told);
  offer(self, told, false, [self, told](uint32_t mirror) {
    if (!told.is_known) become_newcomer(self->state, told);
    self->send(self->state.config.mirrored, make_repeat_changes(mirror));
  });
}

// It has what the others have.
void tell_directory(variable_owner_pointer self) {
  if (auto told = std::exchange(self->state.returned, std::nullopt))
    offer(self, *told, true, [](uint32_t) {});
}

caf::result<msg<wire::TookOver>> take_over(variable_owner_pointer self, uint64_t term) {
  auto& state = self->state;
  if (state.returned)
    return to_caf({errc::failed_precondition,
                   fmt::format("it was not told yet what '{}' is", state.config.variable.name)});
  state.has_taken_over = true;
  if (state.accumulator)
    self->send(state.accumulator,
               make_set_step(state.closed ? state.closed->step + 1 : state.first_step));
  return make_took_over(term, state.closed);
}

int64_t rows_in(const shape& extents) {
  return extents.rank() == 0 ? 0 : extents.dims().front();
}

} // namespace

replicated_owner_actor::behavior_type variable_owner(variable_owner_pointer self,
                                                     variable_owner_config config) {
  self->state.copies
    = variable_copies{{config.variable.name, config.copies, config.rule, config.copies_elsewhere},
                      std::exchange(config.initial, {}).clone()};
  self->state.config = std::move(config);
  using state = variable_owner_state;
  self->state.log = change_log{rows_in(self->state.config.variable.extents)};
  return {
    [self](const msg<wire::ReadVariable>& wanted) {
      auto read = [wanted](state& of) { return of.read(wanted.reader().getComponent()); };
      return answer<wire::VariableSnapshot>(self, read);
    },
    [self](const msg<wire::PullVariable>& wanted) {
      auto pull = [wanted](state& of) { return of.pull(wanted.reader().getKnown()); };
      return answer<wire::VariableChanges>(self, pull);
    },
    [self](const msg<wire::ChangeVariable>& wanted) { return change_by_hand(self, wanted); },
    [self](const msg<wire::ReadAverage>& average) {
      auto read = [average](state& of) { return of.read_average(average.reader().getName()); };
      return answer<wire::VariableSnapshot>(self, read);
    },
    [self](const msg<wire::UseOptimizer>& wanted) { return change_by(self, wanted, &state::use); },
    [self](const msg<wire::ApplyUpdate>& update) { return apply(self, update); },
    [self](const msg<wire::ReleaseUpdate>& wanted) {
      return change_by(self, wanted, &state::release);
    },
    [self](const msg<wire::ReadState>&) { return self->state.read_state(); },
    [self](const msg<wire::RestoreState>& wanted) {
      return change_by(self, wanted, &state::restore);
    },
    [self](const use_mirror& told) {
      self->state.is_certain = false;
      use(self, told.mirror, 0);
    },
    [self](const use_accumulator& told) { use(self, told.accumulator); },
    [self](const come_back& told) { return_as_mirror(self, told); },
    [self](const msg<wire::RepeatChanges>& said) {
      repeat_to_sender(self, said.reader().getMirror());
    },
    [self](const msg<wire::MirrorState>& told) { return repeat(self, told); },
    [self](const msg<wire::TakeOver>& said) { return take_over(self, said.reader().getTerm()); },
  };
}

} // namespace troupe
