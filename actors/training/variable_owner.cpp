// SPDX-License-Identifier: Apache-2.0
// The variable owner's handlers: asking its devices, telling its mirror, and taking over.
#include "actors/training/variable_owner.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/errors/failure.hpp"
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

error not_holder(const variable_owner_state& state) {
  return {errc::unavailable, fmt::format("'{}' is held by another", state.config.variable.name)};
}

// ---- answering at the right place ----

// Answers a caller, but not before the mirror has made the change that the answer may show: until
// then the change may be lost, and asked for again.
// @param change Null: the answer does not wait.
template <class Reply>
void deliver_after(unmirrored_change* change, caf::typed_response_promise<msg<Reply>> promise,
                   expected<msg<Reply>> answer) {
  if (!answer || change == nullptr) return deliver(promise, std::move(answer));
  change->settle = [settle = std::move(change->settle), promise,
                    answer = std::move(*answer)](const std::optional<error>& refused) mutable {
    settle(refused);
    refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
  };
}

// ---- asking the device ----

// Sets the time of an update: when the variable answered, its kernels were only queued.
template <class Reply>
void stamp(msg<Reply>& answer, job_time now, job_time took) {
  if constexpr (std::is_same_v<Reply, wire::UpdateApplied>) {
    auto done = read_update_applied(answer.reader());
    done.applied = now;
    done.took = took;
    answer = make_update_applied(done);
  }
}

// A device's actor is gone, or a bundle that the variable is, or was, part of.
void on_down(variable_owner_state& state, const caf::down_msg& down) {
  auto is_gone = [&down](const auto& actor) { return down.source == actor.address(); };
  if (std::ranges::any_of(state.config.places, is_gone, &processor::device))
    state.devices.end.come(down.reason);
  else
    std::erase_if(state.devices.bundles, is_gone);
}

template <class Message, class... Others>
constexpr bool is_one_of = (std::is_same_v<Message, Others> || ...);

// Whether a request is answered as soon as its work is queued: its result stays on the device,
// where later work comes after it. The host looks at the answers of other requests.
template <class Message>
bool stays_there(const msg<Message>& request, device where) {
  if constexpr (std::is_same_v<Message, wire::ReadVariable>)
    return computes_at(request.reader(), where);
  return is_one_of<Message, wire::ApplyUpdate, wire::ReleaseUpdate>;
}

// Whether a request leaves the variable as a bundle knows it.
template <class Message>
constexpr bool is_read
  = is_one_of<Message, wire::ReadVariable, wire::PullVariable, wire::ReadAverage, wire::ReadState>;

// The places that a request is for: all for a change, and for a checkpoint, which is to see that
// they are equal; one for a read, that of its reader if it computes on one of the devices.
template <class Message>
std::vector<size_t> places_for(const variable_owner_config& config, const msg<Message>& request) {
  const auto& places = config.places;
  if constexpr (std::is_same_v<Message, wire::ReadVariable>)
    for (size_t i = 0; i < places.size(); ++i)
      if (computes_at(request.reader(), places[i].owned->where())) return {i};
  if (is_read<Message> && !std::is_same_v<Message, wire::ReadState>) return {0};
  std::vector<size_t> all(places.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

// Whether a request changes nothing, though others of its kind do.
template <class Message>
bool is_question(const msg<Message>& request) {
  if constexpr (std::is_same_v<Message, wire::UseOptimizer>) return request.reader().getAsk();
  return false;
}

/// A request to all devices of a variable, and the answer that waits for them.
template <class Reply>
struct pending_request {
  caf::typed_response_promise<msg<Reply>> promise;
  std::vector<size_t> places;
  std::vector<expected<msg<Reply>>> answers; ///< By place.
  size_t left = 0;
  bool is_question = false; ///< Whether a place may refuse it alone.
};

// Whether a place answers as the first one does, as far as that can be seen.
template <class Reply>
bool is_alike(const msg<Reply>& first, const msg<Reply>& other) {
  if constexpr (std::is_same_v<Reply, wire::VariableState>) {
    auto a = read_state(first.reader(), first.owner());
    auto b = read_state(other.reader(), other.owner());
    auto is_same = [](const named_payload& left, const named_payload& right) {
      return have_same_bits(left.value, right.value);
    };
    return a.version == b.version && have_same_bits(a.value, b.value)
           && std::ranges::equal(a.slots, b.slots, is_same)
           && a.average.has_value() == b.average.has_value()
           && (!a.average || is_same(*a.average, *b.average));
  }
  return true;
}

// Why the copies of a variable are not one any more; nothing, if they are.
template <class Reply>
std::optional<error> difference_in(const variable_owner_config& config,
                                   const pending_request<Reply>& pending) {
  const auto& answers = pending.answers;
  auto name_at = [&](size_t i) { return config.places[pending.places[i]].owned->name(); };
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

// Answers a request when all devices have: with the answer of the first, if the copies are alike; a
// question, by the first that refuses, if one does.
template <class Message, class Reply>
void deliver_if_done(variable_owner_state& state, pending_request<Reply>& pending) {
  if (--pending.left > 0) return;
  auto refused = std::ranges::find_if_not(pending.answers, &expected<msg<Reply>>::has_value);
  if (pending.is_question && refused != pending.answers.end())
    return deliver(pending.promise, std::move(*refused));
  if (auto difference = difference_in(state.config, pending))
    state.devices.torn = difference;
  else if (std::is_same_v<Message, wire::RestoreState> && pending.answers.front())
    state.devices.torn.reset();
  if (state.devices.torn)
    pending.promise.deliver(to_caf(*state.devices.torn));
  else
    deliver(pending.promise, std::move(pending.answers.front()));
}

// Has the variable handle a request on its devices. A device's actor does one request of a stream
// after the other, and keeps all objects that it refers to, above all gradients, until the device
// has done it.
// @param handle A method of the variable.
template <class Message, class Reply>
caf::result<msg<Reply>>
ask_device(variable_owner_pointer self, const msg<Message>& request,
           expected<msg<Reply>> (owned_variable::*handle)(const msg<Message>&)) {
  const auto& config = self->state.config;
  if (self->state.devices.torn && !std::is_same_v<Message, wire::RestoreState>)
    return to_caf(*self->state.devices.torn);
  auto pending = std::make_shared<pending_request<Reply>>();
  pending->promise = self->make_response_promise<msg<Reply>>();
  pending->places = places_for(config, request);
  pending->left = pending->places.size();
  pending->answers.resize(pending->left);
  pending->is_question = is_question(request);
  for (size_t i = 0; i < pending->places.size(); ++i) {
    const auto& place = config.places[pending->places[i]];
    device_work work{
      .stream = place.stream,
      .purpose = fmt::format("what is asked of variable '{}'", config.variable.name),
      .launch = [variable = self->state.at(pending->places[i]), request, handle, pending,
                 i](compute_stream&) { pending->answers[i] = (variable.get()->*handle)(request); },
      .is_answered_when_queued = stays_there(request, place.owned->where())};
    ++self->state.devices.requests;
    self
      ->request(place.device, caf::infinite, std::move(work)) // it has a deadline of its own
      .then(
        [self, pending, i](const device_work_done& done) {
          --self->state.devices.requests;
          auto& answer = pending->answers[i];
          if (done.thrown) answer = tl::unexpected<error>(reason_of(done.thrown));
          if (answer) stamp(*answer, self->state.config.world->now(), done.elapsed);
          if (!is_read<Message>)
            for (const auto& bundle : self->state.devices.bundles)
              self->send(bundle, bundle_changed{});
          deliver_if_done<Message>(self->state, *pending);
        },
        [self, pending, i](const caf::error& failure) {
          --self->state.devices.requests;
          self->state.devices.end.explain(failure, [self, pending, i](const caf::error& why) {
            pending->answers[i] = tl::unexpected<error>(from_caf(why));
            deliver_if_done<Message>(self->state, *pending);
          });
        });
  }
  return pending->promise;
}

// ---- reading ----

// Answers a request that reads the variable, if this owner holds it: now or, while it is unsure or
// the mirror lacks a numbered change, later.
// @param read A method of the variable.
template <class Message, class Reply>
caf::result<msg<Reply>> answer(variable_owner_pointer self, const msg<Message>& request,
                               expected<msg<Reply>> (owned_variable::*read)(const msg<Message>&)) {
  auto& state = self->state;
  if (!state.config.places.empty()) return ask_device(self, request, read);
  auto read_now = [self, request, read]() -> expected<msg<Reply>> {
    if (self->state.holds()) return (self->state.variable.get()->*read)(request);
    return tl::unexpected<error>(not_holder(self->state));
  };
  auto is_certain = state.now_in != owner_phase::unsure;
  if (is_certain && state.mirror.changes.last_numbered() == nullptr) return to_result(read_now());
  auto promise = self->make_response_promise<msg<Reply>>();
  auto answer_now = [self, promise, read_now] {
    deliver_after(self->state.mirror.changes.last_numbered(), promise, read_now());
  };
  if (is_certain)
    answer_now();
  else
    state.delayed_answers.emplace_back(answer_now);
  return promise;
}

// While no request of its own is at the device, the owner answers by itself a reader that computes
// there: the value stays where it is, and all earlier work of the device comes before the reader's.
caf::result<msg<wire::VariableSnapshot>> read(variable_owner_pointer self,
                                              const msg<wire::ReadVariable>& request) {
  const auto& state = self->state;
  if (!state.config.places.empty() && state.devices.requests == 0 && !state.devices.end.has_come()
      && state.devices.bundles.empty() && !state.devices.torn)
    if (auto there = state.at(places_for(state.config, request).front())->read_there(request))
      return *there;
  return answer(self, request, &owned_variable::read);
}

// ---- telling the mirror ----

void go_on_alone(variable_owner_state& state) {
  state.mirror.handle = nullptr;
  state.become_certain();
  state.mirror.changes.settle_all();
}

// Another holds the variable: later changes here are not part of it.
void step_down(variable_owner_state& state) {
  state.enter(owner_phase::deposed);
  state.mirror.changes.settle_all(error{errc::unavailable, taken_over.message});
}

// The mirror that an owner tells of changes. An answer is late if the owner has another mirror by
// then, or has told this one everything anew.
struct mirror_session {
  replicated_owner_actor mirror;
  uint64_t telling;

  explicit mirror_session(const variable_owner_state& state)
    : mirror(state.mirror.handle), telling(state.mirror.telling) {}

  [[nodiscard]] bool is_late(const variable_owner_state& state) const {
    return mirror != state.mirror.handle || telling != state.mirror.telling;
  }
};

// Tells the directory of a mirror that cannot be reached. The mirror is behind from now on: the
// directory decides whether this owner goes on alone.
void miss_mirror(variable_owner_pointer self, const mirror_session& session) {
  const auto& config = self->state.config;
  auto missed = make_miss_mirror(config.variable_index, self->state.mirror.number);
  self
    ->request(config.directory, caf::infinite, missed) // it answers, or the job is over
    .then(
      [self, session](const msg<wire::OwnerFollowed>&) {
        if (!session.is_late(self->state)) go_on_alone(self->state);
      },
      [self, session](const caf::error&) {
        if (!session.is_late(self->state)) step_down(self->state);
      });
}

// The mirror has made the first change, or has not. An owner has lost its variable if the mirror
// refuses because it holds the variable.
void on_made(variable_owner_pointer self, const mirror_session& session,
             const std::optional<error>& reason) {
  auto& state = self->state;
  if (session.is_late(state)) return;
  if (reason)
    return reason->code == taken_over.code ? step_down(state) : miss_mirror(self, session);
  state.become_certain();
  state.mirror.changes.settle_first();
}

template <class Reply, class Message>
void tell_mirror(variable_owner_pointer self, msg<Message> change,
                 std::function<void(const std::optional<error>&)> settle,
                 std::optional<request_id> id = {}) {
  auto tell = [self, session = mirror_session{self->state}, change = std::move(change)] {
    self
      ->request(session.mirror, caf::infinite, change) // the mirror answers, or is gone
      .then(
        [self, session](const msg<Reply>&) { on_made(self, session, std::nullopt); },
        [self, session](const caf::error& reason) { on_made(self, session, from_caf(reason)); });
  };
  self->state.mirror.changes.add({std::move(tell), std::move(settle), id});
}

// The answer to a change that was made here, when the mirror has made it, too.
template <class Reply, class Message>
caf::result<msg<Reply>> mirrored(variable_owner_pointer self, const msg<Message>& change,
                                 expected<msg<Reply>> answer, std::optional<request_id> id = {}) {
  if (!answer || !self->state.mirror.handle) return to_result(std::move(answer));
  auto promise = self->make_response_promise<msg<Reply>>();
  tell_mirror<Reply>(
    self, change,
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

// Why the sender may not change the variable; nothing if it may. Only the holder changes it for
// others. A mirror makes the changes of its owner until it takes over: an owner that has begun a
// new life in the same place does not know the variable's holder.
std::optional<error> refusal(variable_owner_pointer self) {
  const auto& state = self->state;
  auto is_mirrored = is_mirrored_owner(self);
  if (is_mirrored ? state.repeats() : state.holds()) return std::nullopt;
  return is_mirrored ? taken_over : not_holder(state);
}

// The number of a change that may be asked for again.
template <class Message>
std::optional<request_id> request_id_of(const msg<Message>& request) {
  if constexpr (requires { request.reader().getId(); })
    if (request.reader().hasId()) return read_request_id(request.reader().getId());
  return std::nullopt;
}

// Makes a change here and at the mirror, which is told of each change once. A repeated request is
// answered when the mirror has made the change, without a wait for later ones: else repetitions
// could come faster than the mirror makes changes.
// @param make A method of the variable.
template <class Reply, class Message>
caf::result<msg<Reply>>
change_by(variable_owner_pointer self, const msg<Message>& request,
          expected<msg<Reply>> (owned_variable::*make)(const msg<Message>&)) {
  if (!self->state.config.places.empty()) return ask_device(self, request, make);
  if (auto refused = refusal(self)) return to_caf(*refused);
  auto& state = self->state; // GCC 12 takes it from a null `self` in the call, under sanitizers
  auto id = request_id_of(request);
  const auto* known = id ? state.variable->made(*id) : nullptr;
  auto shows_later_changes = known != nullptr && !known->snapshot && !known->applied;
  auto answer = (state.variable.get()->*make)(request);
  if (known == nullptr) return mirrored(self, request, std::move(answer), id);
  auto promise = self->make_response_promise<msg<Reply>>();
  deliver_after(shows_later_changes ? state.mirror.changes.last_numbered()
                                    : state.mirror.changes.find(*id),
                promise, std::move(answer));
  return promise;
}

// Applies an update, and tells the mirror the update or its outcome, whichever has fewer bytes. An
// update that is held has changed nothing yet.
caf::result<msg<wire::UpdateApplied>> apply(variable_owner_pointer self,
                                            const msg<wire::ApplyUpdate>& update) {
  if (!self->state.config.places.empty() || update.reader().hasId())
    return change_by(self, update, &owned_variable::apply_once);
  auto& variable = *self->state.variable;
  if (auto refused = refusal(self)) return to_caf(*refused);
  auto answer = variable.apply_once(update);
  if (!self->state.mirror.handle || !answer || !variable.closed() || update.reader().getHold())
    return mirrored(self, update, std::move(answer));
  auto outcome = variable.state_for_mirror();
  auto is_smaller = outcome.reader().totalSize().wordCount < update.reader().totalSize().wordCount;
  return is_smaller ? mirrored(self, outcome, std::move(answer))
                    : mirrored(self, update, std::move(answer));
}

void tell_directory(variable_owner_pointer self);

caf::result<msg<wire::UpdateApplied>> repeat(variable_owner_pointer self,
                                             const msg<wire::MirrorState>& owners_state) {
  if (!is_mirrored_owner(self) || !self->state.repeats()) return to_caf(taken_over);
  auto done = self->state.variable->mirror_state(owners_state);
  if (done) tell_directory(self);
  return to_result(std::move(done));
}

// Tells a new mirror all there is. The state comes last: with it the mirror may take over. Callers
// that wait for a former mirror, which is gone, wait no more.
void use(variable_owner_pointer self, const replicated_owner_actor& mirror, uint32_t number) {
  auto& state = self->state;
  state.mirror.changes.settle_all();
  ++state.mirror.telling;
  state.mirror.handle = mirror;
  state.mirror.number = number;
  auto no_caller_waits = [](const std::optional<error>&) {};
  const auto& variable = *state.variable;
  if (!variable.optimizer().is_empty())
    tell_mirror<wire::OptimizerInUse>(self, variable.optimizer(), no_caller_waits);
  if (!variable.held().is_empty())
    tell_mirror<wire::UpdateApplied>(self, variable.held(), no_caller_waits);
  tell_mirror<wire::UpdateApplied>(self, variable.state_for_mirror(), no_caller_waits);
}

// Takes the mirror that an owner begins with, unless a peer has said before that another process
// holds the variable.
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
  self->state.devices.bundles.push_back(bundle);
  self->monitor(bundle);
}

// ---- coming back ----

template <class Then>
void offer(variable_owner_pointer self, const come_back& newcomer, bool is_filled, Then then) {
  const auto& config = self->state.config;
  auto offered = make_offer_mirror(config.variable_index, newcomer.is_mirrors, is_filled);
  self
    ->request(config.directory, caf::infinite, offered) // it answers, or the job is over
    .then([then](const msg<wire::OwnerFollowed>& reply) { then(reply.reader().getMirror()); },
          [](const caf::error&) {});
}

// Offers this owner as a mirror. The directory refuses an owner in its first life, which stays as
// it is.
void return_as_mirror(variable_owner_pointer self, const come_back& newcomer) {
  if (newcomer.is_known) self->state.become_newcomer(newcomer);
  offer(self, newcomer, false, [self, newcomer](uint32_t mirror) {
    if (!newcomer.is_known) self->state.become_newcomer(newcomer);
    self->send(self->state.config.mirrored, make_repeat_changes(mirror));
  });
}

// Tells the directory that this mirror has the holder's state.
void tell_directory(variable_owner_pointer self) {
  auto newcomer = std::exchange(self->state.returned, std::nullopt);
  if (!newcomer) return;
  self->state.enter(owner_phase::mirroring);
  offer(self, *newcomer, true, [](uint32_t) {});
}

// Answers with the state. A mirror does so, too: it may be asked before it has taken over.
caf::result<msg<wire::VariableState>> read_state(variable_owner_pointer self,
                                                 const msg<wire::ReadState>& request) {
  if (!self->state.config.places.empty())
    return ask_device(self, request, &owned_variable::read_state);
  return to_result(self->state.variable->read_state(request));
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
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self->state, down); });
  for (const auto& place : self->state.config.places)
    self->monitor(place.device);
  using owned = owned_variable;
  return {
    [self](const msg<wire::ReadVariable>& request) { return read(self, request); },
    [self](const msg<wire::PullVariable>& request) { return answer(self, request, &owned::pull); },
    [self](const msg<wire::ChangeVariable>& request) {
      return change_by(self, request, &owned::change_once);
    },
    [self](const msg<wire::FollowOwner>&) { return make_client_known(++self->state.clients); },
    [self](const msg<wire::ReadAverage>& request) {
      return answer(self, request, &owned::read_average);
    },
    [self](const msg<wire::UseOptimizer>& request) {
      return change_by(self, request, &owned::use);
    },
    [self](const msg<wire::ApplyUpdate>& update) { return apply(self, update); },
    [self](const msg<wire::ReleaseUpdate>& request) {
      return change_by(self, request, &owned::release);
    },
    [self](const msg<wire::ReadState>& request) { return read_state(self, request); },
    [self](const msg<wire::RestoreState>& request) {
      return change_by(self, request, &owned::restore);
    },
    [self](const use_mirror& message) { begin_with(self, message.mirror); },
    [self](const use_accumulator& message) { use(self, message.accumulator); },
    [self](const come_back& newcomer) { return_as_mirror(self, newcomer); },
    [self](const lend_variable& request) { return lend(self->state, request.where); },
    [self](const use_bundle& message) { use(self, message.bundle); },
    [self](const msg<wire::RepeatChanges>& request) {
      repeat_to_sender(self, request.reader().getMirror());
    },
    [self](const msg<wire::MirrorState>& owners_state) { return repeat(self, owners_state); },
    [self](const msg<wire::TakeOver>& request) {
      return take_over(self, request.reader().getTerm());
    },
  };
}

} // namespace troupe
