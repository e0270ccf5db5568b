// SPDX-License-Identifier: Apache-2.0
// The failover client's handlers: passing requests on, waiting for a holder, asking again.
#include "actors/replication/failover_client.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/world/ask_again.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using failover_client_pointer = observed_pointer<failover_client_actor, failover_client_state>;
using failover_client_phase = failover_client_state::phase;
using closed_or_none = std::optional<closed_step>;

// The time between two looks whether a process has come.
constexpr auto look_period = std::chrono::milliseconds{20};

// ---- learning from answers, and from a mirror's knowledge ----

// Most answers change nothing in the state.
template <class Message, class Reply>
void note(failover_client_state&, const msg<Message>&, const msg<Reply>&) {}

// The last step that an accepted gradient may be part of.
uint64_t last_step(const failover_client_config& config, wire::PushReply::Reader body) {
  return config.asynchronous ? config.asynchronous->last_step(body.getNextStep())
                             : body.getAccumulatorStep();
}

void note(failover_client_state& state, const msg<wire::PushGradient>& pushed,
          const msg<wire::PushReply>& reply) {
  auto body = reply.reader();
  if (body.getVerdict() == wire::Verdict::ACCEPTED)
    return state.kept.add(pushed, last_step(state.config, body));
  auto from = read_origin(pushed.reader().getOrigin());
  auto is_late = from.local_step < body.getAccumulatorStep();
  if (!is_late && !state.config.asynchronous) // its former life's gradient counts
    state.kept.add(pushed, body.getAccumulatorStep());
  else
    state.kept.forget(from);
}

void note(failover_client_state& state, const msg<wire::TakeGradient>&,
          const msg<wire::UpdateApplied>& applied) {
  state.reports.close(applied.reader().getStep());
}

// The answer that the lost holder must have given to a request; empty, if the mirror does not know
// it.
template <class Reply, class Message>
expected<msg<Reply>> known_answer(failover_client_state&, const msg<Message>&,
                                  const closed_or_none&) {
  return msg<Reply>{};
}

template <>
expected<msg<wire::PushReply>> known_answer(failover_client_state& state,
                                            const msg<wire::PushGradient>& pushed,
                                            const closed_or_none& closed) {
  if (!closed) return msg<wire::PushReply>{};
  auto from = read_origin(pushed.reader().getOrigin());
  if (state.config.asynchronous) {
    auto next = step_with(*closed, from);
    return next ? make_push_reply(verdict::accepted, closed->step, *next) : msg<wire::PushReply>{};
  }
  auto known = verdict_of(*closed, from);
  return known ? make_push_reply(*known, closed->step) : msg<wire::PushReply>{};
}

template <>
expected<msg<wire::UpdateApplied>> known_answer(failover_client_state& state,
                                                const msg<wire::TakeGradient>&,
                                                const closed_or_none& closed) {
  auto is_closed = closed && closed->step == state.reports.next();
  return is_closed ? make_update_applied(closed->applied) : msg<wire::UpdateApplied>{};
}

template <>
expected<msg<wire::UpdateApplied>> known_answer(failover_client_state&,
                                                const msg<wire::ReleaseUpdate>&,
                                                const closed_or_none& closed) {
  auto is_released = closed && closed->released;
  return is_released ? make_update_applied(*closed->released) : msg<wire::UpdateApplied>{};
}

// A request that is made again, to another holder.
template <class Message>
msg<Message> renewed(const msg<Message>& message) {
  return message;
}

// A gradient in a new message that refers to the same memory: the old message may have been
// recalled, since a step was closed with it that the present holder does not know, or of which the
// answer was lost.
msg<wire::PushGradient> renewed(const msg<wire::PushGradient>& message) {
  auto body = message.reader();
  return make_push_gradient(read_origin(body.getOrigin()),
                            read_gradient(body.getGradient(), message.owner()));
}

// ---- passing on ----

bool is_lost(const failover_client_state& state) {
  return state.now_in == failover_client_phase::lost;
}

// Asks the requests that have waited for an actor to be found, or for other requests.
void ask_early_ones(failover_client_pointer self) {
  for (auto id : self->state.flights.in_order()) {
    const auto& early = self->state.flights.at(id);
    if (!early.is_early) continue;
    auto ask = early.ask;
    ask();
  }
}

// Keeps a request that has failed for the new holder. The wait for the directory's message about
// that begins with the first failure.
void await_holder(failover_client_pointer self, flight& request, error why) {
  auto& flights = self->state.flights;
  auto is_first = !flights.any_failed();
  request.failed = std::move(why);
  if (!is_first) return;
  ++self->state.waits;
  self->delayed_send(self, self->state.config.timeout, give_up{});
}

void on_failed(failover_client_pointer self, uint64_t id, const error& why) {
  auto& flights = self->state.flights;
  if (why.code == errc::unavailable && !is_lost(self->state))
    return await_holder(self, flights.at(id), why);
  auto failed = flights.take(id);
  failed.fail(why);
  if (failed.keeps_order) ask_early_ones(self);
}

// Whether the answer comes when a step is over. Such a request is made once: a repetition would
// come after that step, when the first request has timed out.
template <class Message>
constexpr bool waits_for_step
  = std::is_same_v<Message, wire::AwaitAggregate> || std::is_same_v<Message, wire::TakeAggregate>;

// Sets out a flight: asks the holder now, and again when another one holds the variable.
// @param holder The actor to ask: the owner, or the accumulator.
// @param tell Called with the answer, or with the reason why there is none.
template <class Reply, class Handle, class Message, class Tell>
void set_out(failover_client_pointer self, Handle variable_holder::*holder,
             const msg<Message>& message, Tell tell, bool is_repetition = false) {
  if (is_lost(self->state))
    return tell(expected<msg<Reply>>{tl::unexpected<error>(self->state.why)});
  auto again_after = waits_for_step<Message> ? job_time{0} : self->state.config.ask_again_after;
  auto may_be_lost = again_after > job_time{0};
  auto keeps_order = may_be_lost && std::is_same_v<Message, wire::PushGradient>;
  auto id = self->state.flights.add({.is_repetition = is_repetition, .keeps_order = keeps_order});
  auto& added = self->state.flights.at(id);
  auto settle = std::make_shared<Tell>(std::move(tell));
  added.ask = [self, id, holder, message, settle, again_after] {
    auto& current = self->state.flights.at(id);
    const auto& actor = self->state.holder.*holder;
    auto attempt = ++current.attempts;
    current.is_early = !actor || self->state.flights.would_overtake(id);
    if (current.is_early) return;
    const auto& request = attempt == 1 && again_after == job_time{0} ? message : renewed(message);
    ask_until_answered<msg<Reply>>(
      self, actor, request, again_after, // it answers, or is gone
      [self, id, attempt, message, settle](const expected<msg<Reply>>& reply) {
        if (self->state.flights.find(id, attempt) == nullptr) return;
        if (!reply) return on_failed(self, id, reply.error());
        auto answered = self->state.flights.take(id);
        note(self->state, message, *reply);
        (*settle)(reply);
        if (answered.keeps_order) ask_early_ones(self);
      });
  };
  added.settle = [self, message, settle](const closed_or_none& closed) {
    auto known = known_answer<Reply>(self->state, message, closed);
    if (known && known->is_empty()) return false;
    if (known) note(self->state, message, *known);
    (*settle)(std::move(known));
    return true;
  };
  added.fail = [settle](const error& reason) {
    (*settle)(expected<msg<Reply>>{tl::unexpected<error>(reason)});
  };
  auto ask = added.ask;
  ask();
}

// @param before Called with the answer, before the asker is told.
template <class Reply, class Handle, class Message, class Before>
caf::result<msg<Reply>> pass_on(failover_client_pointer self, Handle variable_holder::*holder,
                                const msg<Message>& message, Before before) {
  auto promise = self->make_response_promise<msg<Reply>>();
  set_out<Reply>(self, holder, message, [promise, before](expected<msg<Reply>> answer) {
    before(answer);
    deliver(promise, std::move(answer));
  });
  return promise;
}

// A handler that passes requests on.
template <class Message, class Reply, class Handle>
auto passes(failover_client_pointer self, Handle variable_holder::*holder) {
  return [self, holder](const msg<Message>& request) {
    return pass_on<Reply>(self, holder, request, [](const auto&) {});
  };
}

constexpr auto the_owner = &variable_holder::owner;
constexpr auto the_accumulator = &variable_holder::accumulator;

// ---- changes that are asked for again ----

// Asks for a change by the next number. Its answer makes room for the changes behind it, unless the
// variable is lost: then all of them are refused in a row.
template <class Reply, class Message>
void ask_for(failover_client_pointer self, const msg<Message>& request,
             caf::typed_response_promise<msg<Reply>> promise) {
  auto id = self->state.changes.begin();
  set_out<Reply>(self, the_owner, numbered(request, id),
                 [self, id, promise](expected<msg<Reply>> answer) {
                   self->state.changes.open.erase(id.number);
                   deliver(promise, std::move(answer));
                   if (!is_lost(self->state)) self->state.changes.ask_later_ones(false);
                 });
}

template <class Reply, class Message>
caf::result<msg<Reply>> change_once(failover_client_pointer self, const msg<Message>& request) {
  auto promise = self->make_response_promise<msg<Reply>>();
  auto& changes = self->state.changes;
  changes.later.emplace_back([self, request, promise] { ask_for<Reply>(self, request, promise); });
  changes.ask_later_ones(is_lost(self->state));
  return promise;
}

// Sends a message without an answer to the accumulator, after all earlier requests, whichever
// holder gets it.
template <class Message>
void say(failover_client_pointer self, const msg<Message>& message) {
  auto& state = self->state;
  const auto& accumulator = state.holder.accumulator;
  if (accumulator && !state.flights.any_waits()) return self->send(accumulator, message);
  state.unsaid.emplace_back(
    [self, message] { self->send(self->state.holder.accumulator, message); });
}

// Keeps the limit for later holders: the present one may be lost, and a take that is made again
// asks for as many gradients as at first.
void limit_takes(failover_client_pointer self, const msg<wire::CancelTakes>& limit) {
  self->state.keep_limit(limit);
  say(self, limit);
}

// ---- gradients, and the steps that they are part of ----

// The gradient's token is for a step, so all steps before that are over.
caf::result<msg<wire::PushReply>> push(failover_client_pointer self,
                                       const msg<wire::PushGradient>& gradient) {
  self->state.kept.forget_before(gradient.reader().getOrigin().getLocalStep());
  return pass_on<wire::PushReply>(self, the_accumulator, gradient, [](const auto&) {});
}

void report(failover_client_pointer self, const msg<wire::TakenGradient>& taken) {
  if (!taken.is_empty()) self->send(caf::actor_cast<chief_actor>(self->state.closer), taken);
}

// Only the present accumulator counts: a report of a lost one may still come in.
void on_taken(failover_client_pointer self, const msg<wire::TakenGradient>& taken) {
  auto& state = self->state;
  if (self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(state.holder.accumulator))
    report(self, state.reports.add(taken));
}

void look_again(failover_client_state& state) {
  for (const auto& look : std::exchange(state.early_looks, {}))
    look();
}

caf::result<msg<wire::UpdateApplied>> take(failover_client_pointer self,
                                           const msg<wire::TakeGradient>& request) {
  self->state.closer = self->current_sender();
  self->state.limit = {};
  return pass_on<wire::UpdateApplied>(self, the_accumulator, request, [self](const auto& answer) {
    if (!answer) return;
    report(self, self->state.reports.release());
    look_again(self->state);
  });
}

// The status of an accumulator comes after its earlier reports, here too.
void look(failover_client_pointer self, const msg<wire::ReadAccumulator>& request,
          caf::typed_response_promise<msg<wire::AccumulatorStatus>> promise) {
  set_out<wire::AccumulatorStatus>(
    self, the_accumulator, request,
    [self, request, promise](expected<msg<wire::AccumulatorStatus>> answer) {
      if (!answer || !self->state.reports.has_uncertain())
        return deliver(promise, std::move(answer));
      self->state.early_looks.emplace_back(
        [self, request, promise] { look(self, request, promise); });
    });
}

caf::result<msg<wire::AccumulatorStatus>> look(failover_client_pointer self,
                                               const msg<wire::ReadAccumulator>& request) {
  auto promise = self->make_response_promise<msg<wire::AccumulatorStatus>>();
  look(self, request, promise);
  return promise;
}

// ---- the holder of the variable ----

void lose(failover_client_state& state, const error& reason) {
  state.now_in.enter(failover_client_phase::lost);
  state.why = reason;
  for (auto& lost : state.flights.take_if([](const flight&) { return true; }))
    lost.fail(reason);
  state.unsaid.clear();
  state.changes.ask_later_ones(true);
  look_again(state);
}

// A callback of a search, which reports a found actor from any thread.
template <class Handle>
auto teller(failover_client_pointer self, Handle holder_found::*role) {
  return [me = caf::weak_actor_ptr{self->ctrl()}, role,
          term = self->state.holder.term](const caf::strong_actor_ptr& actor) {
    holder_found found{.term = term};
    found.*role = caf::actor_cast<Handle>(actor);
    if (auto alive = me.lock())
      caf::anon_send(caf::actor_cast<failover_client_actor>(alive), found);
  };
}

// Searches for the owner and the accumulator. Both stand in one process: if the search for the
// owner has begun, so has that for the accumulator.
void look_for_holder(failover_client_pointer self) {
  auto& state = self->state;
  if (state.now_in != failover_client_phase::seeking || state.holder.is_sought) return;
  const auto& config = state.config;
  if (!config.owners[state.place()](teller(self, &holder_found::owner))) return;
  state.holder.is_sought = true;
  if (const auto& gradients = config.accumulators[state.place()])
    static_cast<void>(gradients(teller(self, &holder_found::accumulator)));
}

void seek_holder(failover_client_pointer self) {
  look_for_holder(self);
  if (!std::exchange(self->state.holder.is_looking, true))
    self->delayed_send(self, look_period, watch_tick{});
}

void on_tick(failover_client_pointer self) {
  auto& state = self->state;
  auto& holder = state.holder;
  look_for_holder(self);
  holder.looked += look_period;
  auto is_seeking = state.now_in == failover_client_phase::seeking;
  holder.is_looking = is_seeking && holder.looked < state.config.start_deadline;
  if (holder.is_looking) return self->delayed_send(self, look_period, watch_tick{});
  if (is_seeking)
    lose(state, {errc::deadline_exceeded, fmt::format("waited {:.1f} s for the holder of '{}'",
                                                      seconds(holder.looked), state.config.name)});
}

void on_found(failover_client_pointer self, const holder_found& found) {
  auto& state = self->state;
  if (found.term != state.holder.term) return;
  state.find(found);
  ask_early_ones(self);
  if (state.now_in != failover_client_phase::following) return;
  for (const auto& send : std::exchange(state.unsaid, {}))
    send();
}

// ---- another holds the variable ----

// Answers requests from before the loss by the mirror's knowledge, or makes them again.
void ask_again(failover_client_state& state, const std::vector<uint64_t>& before,
               const closed_or_none& closed) {
  for (auto id : before) {
    auto& waiting = state.flights.at(id);
    waiting.failed.reset();
    auto [ask, settle] = std::pair{waiting.ask, waiting.settle};
    settle(closed) ? static_cast<void>(state.flights.take(id)) : ask();
  }
}

// Gives gradients again that may be lost. The answer to the directory waits until the new holder
// has them.
caf::result<msg<wire::OwnerFollowed>> give_again(failover_client_pointer self) {
  auto promise = self->make_response_promise<msg<wire::OwnerFollowed>>();
  auto gradients = self->state.kept.give_again();
  for (auto& gradient : gradients)
    gradient = renewed(gradient);
  auto missing = std::make_shared<size_t>(gradients.size());
  for (const auto& gradient : gradients)
    set_out<wire::PushReply>(
      self, the_accumulator, gradient,
      [promise, missing](const expected<msg<wire::PushReply>>&) mutable {
        if (--*missing == 0) promise.deliver(make_owner_followed());
      },
      true);
  if (gradients.empty()) promise.deliver(make_owner_followed());
  return promise;
}

// Follows the variable to its new holder. Gradients that were being given again are still kept, and
// are given to this one.
caf::result<msg<wire::OwnerFollowed>> follow_to(failover_client_pointer self, uint64_t term,
                                                const closed_or_none& closed) {
  auto& state = self->state;
  state.move(term);
  seek_holder(self);
  auto is_repetition = [](const flight& gradient) { return gradient.is_repetition; };
  for (auto& gradient : state.flights.take_if(is_repetition))
    gradient.fail({errc::cancelled, "it is given to another"});
  state.forget_counted(closed);
  if (state.closer && closed) report(self, state.reports.add_closed(*closed));
  auto before = state.flights.in_order();
  auto followed = give_again(self); // what was accepted comes before what was not
  ask_again(state, before, closed);
  if (!state.limit.is_empty()) say(self, state.limit);
  look_again(state);
  return followed;
}

caf::result<msg<wire::OwnerFollowed>> follow(failover_client_pointer self,
                                             const msg<wire::TookOver>& message) {
  auto& state = self->state;
  auto body = message.reader();
  auto closed = read_closed_step(body.getClosed());
  if (body.getCode() != wire::Errc::NONE)
    lose(state, read_error(body.getCode(), body.getReason()));
  else if (is_lost(state) || body.getTerm() <= state.holder.term)
    return make_owner_followed();
  else if (auto behind = state.behind(closed))
    lose(state, *behind);
  else
    return follow_to(self, body.getTerm(), closed);
  return make_owner_followed();
}

// The timeout of a wait for a new holder. It counts for the last wait only: the others have ended.
void on_timeout(failover_client_pointer self) {
  auto& state = self->state;
  if (--state.waits > 0 || is_lost(state)) return;
  auto has_failed = [](const flight& request) { return request.failed.has_value(); };
  for (auto& request : state.flights.take_if(has_failed))
    request.fail(*request.failed);
  ask_early_ones(self);
}

// The directory, which names the holder, is gone: this process was given up, or the job ends.
void on_down(failover_client_pointer self, const caf::down_msg& down) {
  if (is_lost_node(down.reason) && !is_lost(self->state)) lose(self->state, from_caf(down.reason));
}

// The directory has answered. It may have said before that the variable has moved.
void begin(failover_client_pointer self, uint64_t client) {
  auto& state = self->state;
  state.changes.client = client;
  state.changes.ask_later_ones(is_lost(state));
  if (state.now_in != failover_client_phase::asking) return;
  state.now_in.enter(failover_client_phase::seeking);
  seek_holder(self);
}

} // namespace

failover_client_actor::behavior_type failover_client(failover_client_pointer self,
                                                     failover_client_config config) {
  auto& state = self->state;
  state = failover_client_state{std::move(config)};
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->monitor(state.config.directory);
  auto request = make_follow_owner(state.config.variable, state.config.closes_steps);
  self
    ->request(state.config.directory, caf::infinite, request) // it answers, or is gone
    .then(
      [self](const msg<wire::OwnerFollowed>& reply) { begin(self, reply.reader().getClient()); },
      [self](const caf::error& reason) { lose(self->state, from_caf(reason)); });
  using snapshot = wire::VariableSnapshot;
  using updated = wire::UpdateApplied;
  return {
    passes<wire::ReadVariable, snapshot>(self, the_owner),
    passes<wire::PullVariable, wire::VariableChanges>(self, the_owner),
    [self](const msg<wire::ChangeVariable>& request) {
      return change_once<snapshot>(self, request);
    },
    [self](const msg<wire::FollowOwner>&) { return make_client_known(self->state.changes.client); },
    passes<wire::ReadAverage, snapshot>(self, the_owner),
    passes<wire::UseOptimizer, wire::OptimizerInUse>(self, the_owner),
    [self](const msg<wire::ApplyUpdate>& request) { return change_once<updated>(self, request); },
    passes<wire::ReleaseUpdate, updated>(self, the_owner),
    passes<wire::ReadState, wire::VariableState>(self, the_owner),
    passes<wire::RestoreState, wire::OptimizerInUse>(self, the_owner),
    [self](const msg<wire::PushGradient>& gradient) { return push(self, gradient); },
    [self](const msg<wire::TakeGradient>& request) { return take(self, request); },
    passes<wire::TakeAggregate, wire::Aggregate>(self, the_accumulator),
    passes<wire::AwaitAggregate, wire::Aggregate>(self, the_accumulator),
    [self](const msg<wire::CancelTakes>& limit) { limit_takes(self, limit); },
    [self](const msg<wire::CountMissing>& missing) { say(self, missing); },
    [self](const msg<wire::ReadAccumulator>& request) { return look(self, request); },
    [self](const msg<wire::SetStep>& set) { say(self, set); },
    [self](const msg<wire::TakenGradient>& taken) { on_taken(self, taken); },
    [self](const msg<wire::TookOver>& message) { return follow(self, message); },
    [self](const holder_found& found) { on_found(self, found); },
    [self](watch_tick) { on_tick(self); },
    [self](give_up) { on_timeout(self); },
  };
}

} // namespace troupe
