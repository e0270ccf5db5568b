// SPDX-License-Identifier: Apache-2.0
// The variable owner: reading, choosing the optimizer, applying updates.
#include "actors/training/variable_owner.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/failure.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using variable_owner_pointer = observed_pointer<replicated_owner_actor, variable_owner_state>;
using owner_phase = variable_owner_state::phase;

const error taken_over{errc::cancelled, "its mirror has taken over"};

error held_by_another(const variable_owner_state& state) {
  return {errc::unavailable, fmt::format("'{}' is held by another", state.config.variable.name)};
}

// ---- answering at the right place ----

// A change that the mirror does not have yet may be lost, and asked for again: a caller that is
// told of it before would know more than there is.
// @param change The change that the mirror has to make first; null: the answer does not wait.
template <class Reply>
void deliver_after(told_change* change, caf::typed_response_promise<msg<Reply>> promise,
                   expected<msg<Reply>> answer) {
  if (!answer || change == nullptr) {
    answer ? promise.deliver(std::move(*answer)) : promise.deliver(to_caf(answer.error()));
    return;
  }
  change->settle = [settle = std::move(change->settle), promise,
                    answer = std::move(*answer)](const std::optional<error>& refused) mutable {
    settle(refused);
    refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
  };
}

// ---- asking the device ----

// The kernels of an update were but queued when the variable said that they were.
template <class Reply>
void stamp(msg<Reply>& answer, job_time now, job_time took) {
  if constexpr (std::is_same_v<Reply, wire::UpdateApplied>) {
    auto done = read_update_applied(answer.reader());
    done.applied = now;
    done.took = took;
    answer = make_update_applied(done);
  }
}

// That of the device's actor, or of a bundle that the variable is, or was, part of.
void on_end(variable_owner_state& state, const caf::down_msg& down) {
  auto is_it = [&down](const auto& actor) { return down.source == actor.address(); };
  if (std::ranges::any_of(state.config.places, is_it, &processor::device))
    state.end.come(down.reason);
  else
    std::erase_if(state.bundles, is_it);
}

template <class Message, class... Others>
constexpr bool is_one_of = (std::is_same_v<Message, Others> || ...);

// Whether a request is answered as soon as the device is told of it: its result stays on the
// device, where later work comes after it. The host looks at the answers of other requests.
template <class Message>
bool stays_there(const msg<Message>& wanted, device where) {
  if constexpr (std::is_same_v<Message, wire::ReadVariable>)
    return computes_at(wanted.reader(), where);
  return is_one_of<Message, wire::ApplyUpdate, wire::ReleaseUpdate>;
}

// Whether a request leaves the variable as a bundle knows it.
template <class Message>
constexpr bool is_read
  = is_one_of<Message, wire::ReadVariable, wire::PullVariable, wire::ReadAverage, wire::ReadState>;

// The places that a request is for: one for a read, that of its reader if it computes on a device
// of them; all for a change, and for a checkpoint, which is to see that they are equal.
template <class Message>
std::vector<size_t> places_for(const variable_owner_config& config, const msg<Message>& wanted) {
  const auto& places = config.places;
  if constexpr (std::is_same_v<Message, wire::ReadVariable>)
    for (size_t i = 0; i < places.size(); ++i)
      if (computes_at(wanted.reader(), places[i].owned->where())) return {i};
  if (is_read<Message> && !std::is_same_v<Message, wire::ReadState>) return {0};
  std::vector<size_t> all(places.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

/// A request to all devices of a variable, and the answer that waits for them.
template <class Reply>
struct asked_devices {
  caf::typed_response_promise<msg<Reply>> promise;
  std::vector<size_t> places;
  std::vector<expected<msg<Reply>>> answers; ///< By place.
  size_t left = 0;
};

// Whether a place answers as the first one does, as far as that can be seen.
template <class Reply>
bool is_alike(const msg<Reply>& first, const msg<Reply>& other) {
  if constexpr (std::is_same_v<Reply, wire::VariableState>) {
    auto one = read_state(first.reader(), first.owner());
    auto another = read_state(other.reader(), other.owner());
    auto is_same = [](const named_payload& a, const named_payload& b) {
      return have_same_bits(a.value, b.value);
    };
    return one.version == another.version && have_same_bits(one.value, another.value)
           && std::ranges::equal(one.slots, another.slots, is_same)
           && one.average.has_value() == another.average.has_value()
           && (!one.average || is_same(*one.average, *another.average));
  }
  return true;
}

// Why the copies of a variable are not one any more; nothing, if they are.
template <class Reply>
std::optional<error> difference_in(const variable_owner_config& config,
                                   const asked_devices<Reply>& asked) {
  const auto& answers = asked.answers;
  auto name_at = [&](size_t i) { return config.places[asked.places[i]].owned->name(); };
  for (size_t i = 1; i < answers.size(); ++i) {
    if (answers[i].has_value() != answers[0].has_value()) {
      auto failed = answers[i] ? size_t{0} : i;
      return error{errc::unavailable,
                   fmt::format("variable '{}' was changed on {}, and not on {} ({}); restore it",
                               config.variable.name, name_at(i - failed), name_at(failed),
                               answers[failed].error().message)};
    }
    if (answers[i] && !is_alike(*answers[0], *answers[i]))
      return error{errc::unavailable,
                   fmt::format("variable '{}' has other bits on {} than on {}; restore it",
                               config.variable.name, name_at(i), name_at(0))};
  }
  return std::nullopt;
}

// The first device speaks for all of them.
template <class Message, class Reply>
void deliver_if_done(variable_owner_state& state, asked_devices<Reply>& asked) {
  if (--asked.left > 0) return;
  if (auto difference = difference_in(state.config, asked))
    state.torn = difference;
  else if (std::is_same_v<Message, wire::RestoreState> && asked.answers.front())
    state.torn.reset();
  auto& first = asked.answers.front();
  if (state.torn)
    asked.promise.deliver(to_caf(*state.torn));
  else
    first ? asked.promise.deliver(std::move(*first)) : asked.promise.deliver(to_caf(first.error()));
}

// A device's actor does one request of a stream after the other, and keeps what each refers to,
// gradients above all, until the device has done it.
// @param ask A method of the variable.
template <class Message, class Reply>
caf::result<msg<Reply>>
ask_device(variable_owner_pointer self, const msg<Message>& wanted,
           expected<msg<Reply>> (owned_variable::*ask)(const msg<Message>&)) {
  const auto& config = self->state.config;
  if (self->state.torn && !std::is_same_v<Message, wire::RestoreState>)
    return to_caf(*self->state.torn);
  auto asked = std::make_shared<asked_devices<Reply>>();
  asked->promise = self->make_response_promise<msg<Reply>>();
  asked->places = places_for(config, wanted);
  asked->left = asked->places.size();
  asked->answers.resize(asked->left);
  for (size_t i = 0; i < asked->places.size(); ++i) {
    const auto& place = config.places[asked->places[i]];
    device_work work{.stream = place.stream,
                     .what = fmt::format("what is asked of variable '{}'", config.variable.name),
                     .launch
                     = [variable = self->state.at(asked->places[i]), wanted, ask, asked,
                        i](compute_stream&) { asked->answers[i] = (variable.get()->*ask)(wanted); },
                     .is_answered_when_queued = stays_there(wanted, place.owned->where())};
    ++self->state.at_device;
    self
      ->request(place.device, caf::infinite, std::move(work)) // it has a deadline of its own
      .then(
        [self, asked, i](const device_work_done& done) {
          --self->state.at_device;
          auto& answer = asked->answers[i];
          if (done.thrown) answer = tl::unexpected<error>(reason_of(done.thrown));
          if (answer) stamp(*answer, self->state.config.world->now(), done.elapsed);
          if (!is_read<Message>)
            for (const auto& bundle : self->state.bundles)
              self->send(bundle, bundle_changed{});
          deliver_if_done<Message>(self->state, *asked);
        },
        [self, asked, i](const caf::error& failure) {
          --self->state.at_device;
          self->state.end.explain(failure, [self, asked, i](const caf::error& why) {
            asked->answers[i] = tl::unexpected<error>(from_caf(why));
            deliver_if_done<Message>(self->state, *asked);
          });
        });
  }
  return asked->promise;
}

// ---- reading ----

// A caller that asks another than the holder of the variable is told of the holder, and asks there.
// @param read A method of the variable.
template <class Message, class Reply>
caf::result<msg<Reply>> answer(variable_owner_pointer self, const msg<Message>& wanted,
                               expected<msg<Reply>> (owned_variable::*read)(const msg<Message>&)) {
  auto& state = self->state;
  if (!state.config.places.empty()) return ask_device(self, wanted, read);
  auto read_now = [self, wanted, read]() -> expected<msg<Reply>> {
    if (self->state.holds()) return (self->state.variable.get()->*read)(wanted);
    return tl::unexpected<error>(held_by_another(self->state));
  };
  auto is_certain = state.now_in != owner_phase::unsure;
  if (is_certain && state.changes.last_numbered() == nullptr) return to_result(read_now());
  auto promise = self->make_response_promise<msg<Reply>>();
  auto deliver = [self, promise, read_now] {
    deliver_after(self->state.changes.last_numbered(), promise, read_now());
  };
  if (is_certain)
    deliver();
  else
    state.early.emplace_back(deliver);
  return promise;
}

// While the device has none of its requests, the owner answers a reader that computes there by
// itself: the value stays where it is, and all that was asked of the device comes before what the
// reader asks.
caf::result<msg<wire::VariableSnapshot>> read(variable_owner_pointer self,
                                              const msg<wire::ReadVariable>& wanted) {
  const auto& state = self->state;
  if (!state.config.places.empty() && state.at_device == 0 && !state.end.has_come()
      && state.bundles.empty() && !state.torn)
    if (auto there = state.at(places_for(state.config, wanted).front())->read_there(wanted))
      return *there;
  return answer(self, wanted, &owned_variable::read);
}

// ---- telling the mirror ----

void go_on_alone(variable_owner_state& state) {
  state.mirror = nullptr;
  state.become_certain();
  state.changes.settle_all();
}

// Another holds the variable: later changes here are not part of it.
void step_down(variable_owner_state& state) {
  state.enter(owner_phase::deposed);
  state.changes.settle_all(error{errc::unavailable, taken_over.message});
}

// Whether an answer of a mirror comes too late: it is another one by then, or was told all anew.
struct told_mirror {
  replicated_owner_actor mirror;
  uint64_t telling;

  explicit told_mirror(const variable_owner_state& state)
    : mirror(state.mirror), telling(state.telling) {}

  [[nodiscard]] bool is_late(const variable_owner_state& state) const {
    return mirror != state.mirror || telling != state.telling;
  }
};

// Whether the mirror takes over, which is behind from now on, is not to be decided here.
void miss_mirror(variable_owner_pointer self, const told_mirror& told) {
  const auto& config = self->state.config;
  auto missed = make_miss_mirror(config.variable_index, self->state.mirror_number);
  self
    ->request(config.directory, caf::infinite, missed) // it answers, or the job is over
    .then(
      [self, told](const msg<wire::OwnerFollowed>&) {
        if (!told.is_late(self->state)) go_on_alone(self->state);
      },
      [self, told](const caf::error&) {
        if (!told.is_late(self->state)) step_down(self->state);
      });
}

// An owner that is refused by a mirror that holds the variable has lost it.
void on_made(variable_owner_pointer self, const told_mirror& told,
             const std::optional<error>& reason) {
  auto& state = self->state;
  if (told.is_late(state)) return;
  if (reason) return reason->code == taken_over.code ? step_down(state) : miss_mirror(self, told);
  state.become_certain();
  state.changes.settle_first();
}

template <class Reply, class Message>
void tell_mirror(variable_owner_pointer self, msg<Message> told,
                 std::function<void(const std::optional<error>&)> settle,
                 std::optional<request_id> id = {}) {
  auto tell = [self, to = told_mirror{self->state}, told = std::move(told)] {
    self
      ->request(to.mirror, caf::infinite, told) // the mirror answers, or is gone
      .then([self, to](const msg<Reply>&) { on_made(self, to, std::nullopt); },
            [self, to](const caf::error& reason) { on_made(self, to, from_caf(reason)); });
  };
  self->state.changes.add({std::move(tell), std::move(settle), id});
}

// The answer to a change that was made here, when the mirror has made it, too.
template <class Reply, class Message>
caf::result<msg<Reply>> mirrored(variable_owner_pointer self, const msg<Message>& told,
                                 expected<msg<Reply>> answer, std::optional<request_id> id = {}) {
  if (!answer || !self->state.mirror) return to_result(std::move(answer));
  auto promise = self->make_response_promise<msg<Reply>>();
  tell_mirror<Reply>(
    self, told,
    [promise, answer = std::move(*answer)](const auto& refused) mutable {
      refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
    },
    id);
  return promise;
}

bool is_mirrored_owner(variable_owner_pointer self) {
  const auto& mirrored = self->state.config.mirrored;
  return mirrored && self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(mirrored);
}

// Only the holder of a variable changes it. A mirror repeats the changes of its owner, until it
// takes over: an owner that has begun a new life in the same place does not know what has become of
// the variable.
std::optional<error> refusal(variable_owner_pointer self) {
  const auto& state = self->state;
  auto is_mirrored = is_mirrored_owner(self);
  if (is_mirrored ? state.repeats() : state.holds()) return std::nullopt;
  return is_mirrored ? taken_over : held_by_another(state);
}

// The number of a change that may be asked for again.
template <class Message>
std::optional<request_id> request_id_of(const msg<Message>& wanted) {
  if constexpr (requires { wanted.reader().getId(); })
    if (wanted.reader().hasId()) return read_request_id(wanted.reader().getId());
  return std::nullopt;
}

// The mirror is told of each change once. A change that is asked for again is answered when the
// mirror has made it, before later ones: else askings could come faster than the mirror makes them.
// @param make A method of the variable.
template <class Reply, class Message>
caf::result<msg<Reply>>
change_by(variable_owner_pointer self, const msg<Message>& wanted,
          expected<msg<Reply>> (owned_variable::*make)(const msg<Message>&)) {
  if (!self->state.config.places.empty()) return ask_device(self, wanted, make);
  if (auto refused = refusal(self)) return to_caf(*refused);
  auto& state = self->state; // GCC 12 takes it from a null `self` in the call, under sanitizers
  auto id = request_id_of(wanted);
  const auto* known = id ? state.variable->made(*id) : nullptr;
  auto shows_later_ones = known != nullptr && !known->snapshot && !known->applied;
  auto answer = (state.variable.get()->*make)(wanted);
  if (known == nullptr) return mirrored(self, wanted, std::move(answer), id);
  auto promise = self->make_response_promise<msg<Reply>>();
  deliver_after(shows_later_ones ? state.changes.last_numbered() : state.changes.find(*id), promise,
                std::move(answer));
  return promise;
}

// The mirror is told the update or its outcome, whichever has fewer bytes; an update that is held
// has changed nothing yet.
caf::result<msg<wire::UpdateApplied>> apply(variable_owner_pointer self,
                                            const msg<wire::ApplyUpdate>& update) {
  if (!self->state.config.places.empty() || update.reader().hasId())
    return change_by(self, update, &owned_variable::apply_once);
  auto& variable = *self->state.variable;
  if (auto refused = refusal(self)) return to_caf(*refused);
  auto answer = variable.apply_once(update);
  if (!self->state.mirror || !answer || !variable.closed() || update.reader().getHold())
    return mirrored(self, update, std::move(answer));
  auto outcome = variable.told_state();
  auto is_smaller = outcome.reader().totalSize().wordCount < update.reader().totalSize().wordCount;
  return is_smaller ? mirrored(self, outcome, std::move(answer))
                    : mirrored(self, update, std::move(answer));
}

void tell_directory(variable_owner_pointer self);

caf::result<msg<wire::UpdateApplied>> repeat(variable_owner_pointer self,
                                             const msg<wire::MirrorState>& told) {
  if (!is_mirrored_owner(self) || !self->state.repeats()) return to_caf(taken_over);
  auto done = self->state.variable->mirror_state(told);
  if (done) tell_directory(self);
  return to_result(std::move(done));
}

// The state comes last: with it the mirror may take over. Callers that wait for a former mirror,
// which is gone, wait no more.
void use(variable_owner_pointer self, const replicated_owner_actor& mirror, uint32_t number) {
  auto& state = self->state;
  state.changes.settle_all();
  ++state.telling;
  state.mirror = mirror;
  state.mirror_number = number;
  auto no_caller_waits = [](const std::optional<error>&) {};
  const auto& variable = *state.variable;
  if (!variable.optimizer().is_empty())
    tell_mirror<wire::OptimizerInUse>(self, variable.optimizer(), no_caller_waits);
  if (!variable.held().is_empty())
    tell_mirror<wire::UpdateApplied>(self, variable.held(), no_caller_waits);
  tell_mirror<wire::UpdateApplied>(self, variable.told_state(), no_caller_waits);
}

// A peer may have said before that another holds the variable.
void begin_with(variable_owner_pointer self, const replicated_owner_actor& mirror) {
  if (self->state.now_in != owner_phase::holding) return;
  self->state.enter(owner_phase::unsure);
  use(self, mirror, 0);
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

// ---- being part of a bundle ----

lent_variable lend(const variable_owner_state& state, device where) {
  const auto& places = state.config.places;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].owned->where() == where) return {state.at(i), places[i].device, places[i].stream};
  return {state.variable, {}, 0};
}

void use(variable_owner_pointer self, const bundle_actor& bundle) {
  self->state.bundles.push_back(bundle);
  self->monitor(bundle);
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

// An owner in its first life is refused, and stays what it is.
void return_as_mirror(variable_owner_pointer self, const come_back& told) {
  if (told.is_known) self->state.become_newcomer(told);
  offer(self, told, false, [self, told](uint32_t mirror) {
    if (!told.is_known) self->state.become_newcomer(told);
    self->send(self->state.config.mirrored, make_repeat_changes(mirror));
  });
}

// The new mirror has the holder's state, and says so.
void tell_directory(variable_owner_pointer self) {
  auto told = std::exchange(self->state.returned, std::nullopt);
  if (!told) return;
  self->state.enter(owner_phase::mirroring);
  offer(self, *told, true, [](uint32_t) {});
}

// A mirror answers with its state, too: it may be asked before it has taken over.
caf::result<msg<wire::VariableState>> read_state(variable_owner_pointer self,
                                                 const msg<wire::ReadState>& wanted) {
  if (!self->state.config.places.empty())
    return ask_device(self, wanted, &owned_variable::read_state);
  return to_result(self->state.variable->read_state(wanted));
}

caf::result<msg<wire::TookOver>> take_over(variable_owner_pointer self, uint64_t term) {
  auto& state = self->state;
  if (state.now_in == owner_phase::returning)
    return to_caf({errc::failed_precondition,
                   fmt::format("it was not told yet what '{}' is", state.config.variable.name)});
  if (state.now_in == owner_phase::mirroring) state.enter(owner_phase::taken_over);
  const auto& closed = state.variable->closed();
  if (state.accumulator)
    self->send(state.accumulator, make_set_step(closed ? closed->step + 1 : state.first_step));
  return make_took_over(term, closed);
}

} // namespace

replicated_owner_actor::behavior_type variable_owner(variable_owner_pointer self,
                                                     variable_owner_config config) {
  self->state = variable_owner_state{std::move(config)};
  self->set_down_handler([self](const caf::down_msg& down) { on_end(self->state, down); });
  for (const auto& place : self->state.config.places)
    self->monitor(place.device);
  using owned = owned_variable;
  return {
    [self](const msg<wire::ReadVariable>& wanted) { return read(self, wanted); },
    [self](const msg<wire::PullVariable>& wanted) { return answer(self, wanted, &owned::pull); },
    [self](const msg<wire::ChangeVariable>& wanted) {
      return change_by(self, wanted, &owned::change_once);
    },
    [self](const msg<wire::FollowOwner>&) { return make_client_known(++self->state.clients); },
    [self](const msg<wire::ReadAverage>& wanted) {
      return answer(self, wanted, &owned::read_average);
    },
    [self](const msg<wire::UseOptimizer>& wanted) { return change_by(self, wanted, &owned::use); },
    [self](const msg<wire::ApplyUpdate>& update) { return apply(self, update); },
    [self](const msg<wire::ReleaseUpdate>& wanted) {
      return change_by(self, wanted, &owned::release);
    },
    [self](const msg<wire::ReadState>& wanted) { return read_state(self, wanted); },
    [self](const msg<wire::RestoreState>& wanted) {
      return change_by(self, wanted, &owned::restore);
    },
    [self](const use_mirror& told) { begin_with(self, told.mirror); },
    [self](const use_accumulator& told) { use(self, told.accumulator); },
    [self](const come_back& told) { return_as_mirror(self, told); },
    [self](const lend_variable& wanted) { return lend(self->state, wanted.where); },
    [self](const use_bundle& told) { use(self, told.bundle); },
    [self](const msg<wire::RepeatChanges>& said) {
      repeat_to_sender(self, said.reader().getMirror());
    },
    [self](const msg<wire::MirrorState>& told) { return repeat(self, told); },
    [self](const msg<wire::TakeOver>& said) { return take_over(self, said.reader().getTerm()); },
  };
}

} // namespace troupe
