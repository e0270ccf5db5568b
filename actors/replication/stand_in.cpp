// SPDX-License-Identifier: Apache-2.0
// The stand-in: passing on, waiting, asking again.
#include "actors/replication/stand_in.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/limits.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using stand_in_pointer = observed_pointer<stand_in_actor, stand_in_state>;
using flight = stand_in_state::flight;
using closed_or_none = std::optional<closed_step>;

// How often it looks whether a process has come.
constexpr auto look_period = std::chrono::milliseconds{20};

// ---- what is learnt from answers, and from what a mirror knows ----

template <class Message, class Reply>
void note(stand_in_state&, const msg<Message>&, const msg<Reply>&) {}

// The last step that a gradient may be part of which was accepted.
uint64_t last_step(const stand_in_config& config, wire::PushReply::Reader said) {
  return config.asynchronous ? config.asynchronous->last_step(said.getNextStep())
                             : said.getAccumulatorStep();
}

void note(stand_in_state& state, const msg<wire::PushGradient>& pushed,
          const msg<wire::PushReply>& reply) {
  auto said = reply.reader();
  if (said.getVerdict() == wire::Verdict::ACCEPTED)
    return state.kept.add(pushed, last_step(state.config, said));
  auto from = read_origin(pushed.reader().getOrigin());
  auto is_late = from.local_step < said.getAccumulatorStep();
  if (!is_late && !state.config.asynchronous) // a former life's counts, until that is lost
    state.kept.add(pushed, said.getAccumulatorStep());
  else
    state.kept.forget(from);
}

void note(stand_in_state& state, const msg<wire::TakeGradient>&,
          const msg<wire::UpdateApplied>& applied) {
  state.next_taken = applied.reader().getStep() + 1;
}

// What a request must have been answered by the owner, as far as the mirror knows.
template <class Reply, class Message>
expected<msg<Reply>> known_answer(stand_in_state&, const msg<Message>&, const closed_or_none&) {
  return msg<Reply>{};
}

template <>
expected<msg<wire::PushReply>> known_answer(stand_in_state& state,
                                            const msg<wire::PushGradient>& pushed,
                                            const closed_or_none& closed) {
  if (!closed) return msg<wire::PushReply>{};
  auto from = read_origin(pushed.reader().getOrigin());
  if (state.config.asynchronous) {
    auto next = step_with(*closed, from);
    return next ? make_push_reply(verdict::accepted, closed->step, *next) : msg<wire::PushReply>{};
  }
  auto said = verdict_of(*closed, from);
  return said ? make_push_reply(*said, closed->step) : msg<wire::PushReply>{};
}

template <>
expected<msg<wire::UpdateApplied>>
known_answer(stand_in_state& state, const msg<wire::TakeGradient>&, const closed_or_none& closed) {
  auto is_closed = closed && closed->step == state.next_taken;
  return is_closed ? make_update_applied(closed->applied) : msg<wire::UpdateApplied>{};
}

template <>
expected<msg<wire::UpdateApplied>> known_answer(stand_in_state&, const msg<wire::ReleaseUpdate>&,
                                                const closed_or_none& closed) {
  auto is_released = closed && closed->released;
  return is_released ? make_update_applied(*closed->released) : msg<wire::UpdateApplied>{};
}

// A request that is made again, of another than the lost holder.
template <class Message>
msg<Message> renewed(const msg<Message>& message) {
  return message;
}

// It may have been recalled, since a step was closed with it that the present holder of the
// variable does not know. It refers to the same memory.
msg<wire::PushGradient> renewed(const msg<wire::PushGradient>& message) {
  auto said = message.reader();
  return make_push_gradient(read_origin(said.getOrigin()),
                            read_gradient(said.getGradient(), message.owner()));
}

// ---- passing on ----

// In the order in which they are to be asked: what was accepted comes before what was not.
std::vector<uint64_t> flights_of(const stand_in_state& state) {
  std::vector<uint64_t> ids;
  for (auto is_repetition : {true, false})
    for (const auto& [id, one] : state.flights)
      if (one.is_repetition == is_repetition) ids.push_back(id);
  return ids;
}

void await_word(stand_in_pointer self, flight& one, error why) {
  auto is_first = true;
  for (const auto& [id, other] : self->state.flights)
    is_first = is_first && !other.failed;
  one.failed = std::move(why);
  if (!is_first) return;
  ++self->state.patient;
  self->delayed_send(self, self->state.config.patience, give_up{});
}

void on_failed(stand_in_pointer self, uint64_t id, uint32_t attempt, const caf::error& reason) {
  auto& state = self->state;
  auto found = state.flights.find(id);
  if (found == state.flights.end() || found->second.attempts != attempt) return;
  auto why = from_caf(reason);
  if (why.code == errc::unavailable && !state.nobody)
    return await_word(self, found->second, std::move(why));
  auto failed = std::move(found->second);
  state.flights.erase(found);
  failed.fail(why);
}

// True if the answer is that to the last asking; then the flight is over.
bool land(stand_in_state& state, uint64_t id, uint32_t attempt) {
  auto found = state.flights.find(id);
  if (found == state.flights.end() || found->second.attempts != attempt) return false;
  state.flights.erase(found);
  return true;
}

// @param holder The actor to ask: the owner, or the accumulator.
// @param tell Told of the answer, or why there is none.
template <class Reply, class Handle, class Message, class Tell>
void set_out(stand_in_pointer self, Handle stand_in_state::*holder, const msg<Message>& message,
             Tell tell, bool is_repetition = false) {
  if (self->state.nobody)
    return tell(expected<msg<Reply>>{tl::unexpected<error>(*self->state.nobody)});
  auto id = self->state.flight_count++;
  auto& one = self->state.flights[id];
  one.is_repetition = is_repetition;
  auto settle = std::make_shared<Tell>(std::move(tell));
  one.ask = [self, id, holder, message, settle] {
    auto& one = self->state.flights.at(id);
    const auto& whom = self->state.*holder;
    auto attempt = ++one.attempts;
    one.is_early = !whom;
    if (one.is_early) return;
    const auto& said = attempt == 1 ? message : renewed(message);
    self
      ->request(whom, caf::infinite, said) // answers, or is gone
      .then(
        [self, id, attempt, message, settle](const msg<Reply>& reply) {
          if (!land(self->state, id, attempt)) return;
          note(self->state, message, reply);
          (*settle)(expected<msg<Reply>>{reply});
        },
        [self, id, attempt](const caf::error& reason) { on_failed(self, id, attempt, reason); });
  };
  one.settle = [self, message, settle](const closed_or_none& closed) {
    auto known = known_answer<Reply>(self->state, message, closed);
    if (known && known->is_empty()) return false;
    if (known) note(self->state, message, *known);
    (*settle)(std::move(known));
    return true;
  };
  one.fail = [settle](const error& reason) {
    (*settle)(expected<msg<Reply>>{tl::unexpected<error>(reason)});
  };
  auto ask = one.ask;
  ask();
}

template <class Reply>
void tell(caf::typed_response_promise<msg<Reply>> asker, expected<msg<Reply>> answer) {
  answer ? asker.deliver(std::move(*answer)) : asker.deliver(to_caf(answer.error()));
}

template <class Reply, class Handle, class Message>
caf::result<msg<Reply>> pass_on(stand_in_pointer self, Handle stand_in_state::*holder,
                                const msg<Message>& message) {
  auto promise = self->make_response_promise<msg<Reply>>();
  set_out<Reply>(self, holder, message,
                 [promise](expected<msg<Reply>> answer) { tell(promise, std::move(answer)); });
  return promise;
}

constexpr auto the_owner = &stand_in_state::owner;
constexpr auto the_accumulator = &stand_in_state::accumulator;

// ---- changes that are asked for again ----

void ask_later_ones(stand_in_state& state) {
  auto may_ask = [&state] {
    return state.nobody
           || (state.asker > 0 && state.open_changes.size() < limits::changes_of_asker_max);
  };
  while (!state.later_changes.empty() && may_ask()) {
    auto ask = std::move(state.later_changes.front());
    state.later_changes.pop_front();
    ask();
  }
}

// Those behind it are asked for when it has an answer.
template <class Reply, class Message>
void ask_for(stand_in_pointer self, const msg<Message>& wanted,
             caf::typed_response_promise<msg<Reply>> promise) {
  auto& state = self->state;
  auto number = ++state.change_count;
  state.open_changes.insert(number);
  auto change = numbered(wanted, {state.asker, number, *state.open_changes.begin()});
  set_out<Reply>(self, the_owner, change, [self, number, promise](expected<msg<Reply>> answer) {
    self->state.open_changes.erase(number);
    tell(promise, std::move(answer));
    if (!self->state.nobody) ask_later_ones(self->state); // else all are asked for in a row
  });
}

template <class Reply, class Message>
caf::result<msg<Reply>> change_once(stand_in_pointer self, const msg<Message>& wanted) {
  auto promise = self->make_response_promise<msg<Reply>>();
  self->state.later_changes.emplace_back(
    [self, wanted, promise] { ask_for<Reply>(self, wanted, promise); });
  ask_later_ones(self->state);
  return promise;
}

// A message without an answer comes after what was asked before it, whichever holder gets it.
template <class Message>
void say(stand_in_pointer self, const msg<Message>& message) {
  auto& state = self->state;
  auto waits = !state.accumulator;
  for (const auto& [id, one] : state.flights)
    waits = waits || one.failed || one.is_early;
  if (!waits) return self->send(state.accumulator, message);
  state.unsaid.emplace_back([self, message] { self->send(self->state.accumulator, message); });
}

// A token for a step says that all before it are over.
caf::result<msg<wire::PushReply>> push(stand_in_pointer self,
                                       const msg<wire::PushGradient>& gradient) {
  self->state.kept.forget_before(gradient.reader().getOrigin().getLocalStep());
  return pass_on<wire::PushReply>(self, the_accumulator, gradient);
}

void report(stand_in_state& state, stand_in_pointer self, const msg<wire::TakenGradient>& taken) {
  auto is_new
    = state.reported.is_empty() || state.reported.reader().getStep() < taken.reader().getStep();
  auto told = is_new ? taken : amendment(taken, state.reported);
  if (told.is_empty()) return;
  state.reported = is_new ? taken : amended(state.reported, told);
  self->send(caf::actor_cast<chief_actor>(state.closer), told);
}

// What was on its way from an accumulator that is lost may have been an answer, or a report.
void report_closed(stand_in_state& state, stand_in_pointer self, const closed_or_none& closed) {
  if (!state.closer || !closed) return;
  auto is_over = !state.reported.is_empty() && state.reported.reader().getStep() > closed->step;
  if (!is_over)
    report(state, self, make_taken_gradient(closed->step, closed->accepted, closed->stale));
}

// One that was lost may still have something to say.
void on_taken(stand_in_pointer self, const msg<wire::TakenGradient>& taken) {
  auto& state = self->state;
  if (self->current_sender() != caf::actor_cast<caf::strong_actor_ptr>(state.accumulator)) return;
  auto is_certain = !state.config.asynchronous || taken.reader().getStep() < state.next_taken;
  if (!is_certain)
    state.untold = taken;
  else
    report(state, self, taken);
}

void look_again(stand_in_state& state) {
  for (const auto& look : std::exchange(state.early_looks, {}))
    look();
}

// The step is closed, wherever the variable is held.
void tell_untold(stand_in_state& state, stand_in_pointer self) {
  if (auto told = std::exchange(state.untold, {}); !told.is_empty()) report(state, self, told);
  look_again(state);
}

caf::result<msg<wire::UpdateApplied>> take(stand_in_pointer self,
                                           const msg<wire::TakeGradient>& request) {
  self->state.closer = self->current_sender();
  auto promise = self->make_response_promise<msg<wire::UpdateApplied>>();
  set_out<wire::UpdateApplied>(self, the_accumulator, request,
                               [self, promise](expected<msg<wire::UpdateApplied>> answer) {
                                 if (answer) tell_untold(self->state, self);
                                 tell(promise, std::move(answer));
                               });
  return promise;
}

// What an accumulator says of itself comes after what it has reported, here too.
void look(stand_in_pointer self, const msg<wire::ReadAccumulator>& wanted,
          caf::typed_response_promise<msg<wire::AccumulatorStatus>> promise) {
  set_out<wire::AccumulatorStatus>(
    self, the_accumulator, wanted,
    [self, wanted, promise](expected<msg<wire::AccumulatorStatus>> answer) {
      if (!answer || self->state.untold.is_empty()) return tell(promise, std::move(answer));
      self->state.early_looks.emplace_back(
        [self, wanted, promise] { look(self, wanted, promise); });
    });
}

caf::result<msg<wire::AccumulatorStatus>> look(stand_in_pointer self,
                                               const msg<wire::ReadAccumulator>& wanted) {
  auto promise = self->make_response_promise<msg<wire::AccumulatorStatus>>();
  look(self, wanted, promise);
  return promise;
}

// ---- the holder of the variable ----

void fail_all(stand_in_state& state, const error& reason) {
  for (auto& [id, one] : std::exchange(state.flights, {}))
    one.fail(reason);
  state.unsaid.clear();
}

void lose(stand_in_state& state, const error& reason) {
  state.nobody = reason;
  fail_all(state, reason);
  ask_later_ones(state);
  look_again(state);
}

// The search reports a found actor from any thread.
template <class Handle>
auto teller(stand_in_pointer self, Handle holder_found::*role) {
  return [me = caf::weak_actor_ptr{self->ctrl()}, role,
          term = self->state.term](const caf::strong_actor_ptr& actor) {
    holder_found news{.term = term};
    news.*role = caf::actor_cast<Handle>(actor);
    if (auto alive = me.lock()) caf::anon_send(caf::actor_cast<stand_in_actor>(alive), news);
  };
}

// Both stand in one process: if the owner's has come, so has the accumulator's.
void look_for_holder(stand_in_pointer self) {
  auto& state = self->state;
  if (state.is_found() || state.nobody || state.is_sought) return;
  const auto& config = state.config;
  if (!config.owners[state.holder()](teller(self, &holder_found::owner))) return;
  state.is_sought = true;
  if (const auto& gradients = config.accumulators[state.holder()])
    static_cast<void>(gradients(teller(self, &holder_found::accumulator)));
}

void seek_holder(stand_in_pointer self) {
  auto& state = self->state;
  state.looked = job_time{0};
  look_for_holder(self);
  if (!std::exchange(state.is_looking, true)) self->delayed_send(self, look_period, watch_tick{});
}

void on_tick(stand_in_pointer self) {
  auto& state = self->state;
  look_for_holder(self);
  state.looked += look_period;
  state.is_looking
    = !state.is_found() && !state.nobody && state.looked < state.config.start_deadline;
  if (state.is_looking) return self->delayed_send(self, look_period, watch_tick{});
  if (state.is_found() || state.nobody) return;
  lose(state, {errc::deadline_exceeded, fmt::format("waited {:.1f} s for who holds '{}'",
                                                    seconds(state.looked), state.config.name)});
}

void say_unsaid(stand_in_state& state) {
  for (const auto& said : std::exchange(state.unsaid, {}))
    said();
}

// A holder that was there in a former life only is looked for again.
void on_found(stand_in_pointer self, const holder_found& news) {
  auto& state = self->state;
  if (news.term != state.term) return;
  if (news.owner) state.owner = news.owner;
  if (news.accumulator) state.accumulator = news.accumulator;
  if (!news.owner && !news.accumulator) state.is_sought = false;
  for (auto id : flights_of(state)) {
    const auto& one = state.flights.at(id);
    if (!one.is_early) continue;
    auto ask = one.ask;
    ask();
  }
  if (state.is_found()) say_unsaid(state);
}

// ---- another holds the variable ----

// The chief has heard of steps that the mirror does not know of.
error behind(const stand_in_state& state, uint64_t collected) {
  return {errc::unavailable,
          fmt::format("the owner of '{}' is gone, and its mirror has come to step {} only, the job "
                      "to step {}",
                      state.config.name, collected, state.next_taken)};
}

// Requests from before the loss are answered by what is known, or are made again.
void ask_again(stand_in_state& state, const std::vector<uint64_t>& before,
               const closed_or_none& closed) {
  for (auto id : before) {
    auto& one = state.flights.at(id);
    one.failed.reset();
    auto settle = one.settle;
    if (settle(closed)) {
      state.flights.erase(id);
    } else {
      auto ask = one.ask;
      ask();
    }
  }
  if (state.is_found()) say_unsaid(state);
}

// Gradients that were being given again are still kept, and given to the present holder.
void forget_repetitions(stand_in_state& state) {
  std::vector<flight> overtaken;
  std::erase_if(state.flights, [&](auto& item) {
    if (item.second.is_repetition) overtaken.push_back(std::move(item.second));
    return item.second.is_repetition;
  });
  for (auto& one : overtaken)
    one.fail({errc::cancelled, "it is given to another"});
}

// What the mirror has.
void forget_counted(stand_in_state& state, const closed_or_none& closed) {
  if (!state.config.asynchronous)
    state.kept.forget_before(state.collected(closed));
  else if (closed)
    state.kept.forget_through(closed->latest);
}

// Gradients that may be lost are given again; the answer to the word of the move waits until they
// are there.
caf::result<msg<wire::OwnerFollowed>> give_again(stand_in_pointer self) {
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

caf::result<msg<wire::OwnerFollowed>> follow(stand_in_pointer self,
                                             const msg<wire::TookOver>& told) {
  auto& state = self->state;
  auto said = told.reader();
  if (said.getCode() != wire::Errc::NONE) {
    lose(state, {read_errc(said.getCode()), said.getReason()});
    return make_owner_followed();
  }
  if (said.getTerm() <= state.term) return make_owner_followed();
  auto closed = read_closed_step(said.getClosed());
  auto collected = state.collected(closed);
  if (state.config.closes_steps && collected < state.next_taken) {
    lose(state, behind(state, collected));
    return make_owner_followed();
  }
  state.term = said.getTerm();
  state.owner = nullptr;
  state.accumulator = nullptr;
  state.is_sought = false;
  seek_holder(self);
  forget_repetitions(state);
  forget_counted(state, closed);
  report_closed(state, self, closed);
  state.untold = {}; // it was not certain
  auto before = flights_of(state);
  auto followed = give_again(self); // what was accepted comes before what was not
  ask_again(state, before, closed);
  look_again(state);
  return followed;
}

// Word has come for all waits but the last.
void on_patience_over(stand_in_state& state) {
  if (--state.patient > 0 || state.nobody) return;
  std::vector<flight> failed;
  std::erase_if(state.flights, [&](auto& item) {
    if (!item.second.failed) return false;
    failed.push_back(std::move(item.second));
    return true;
  });
  for (auto& one : failed)
    one.fail(*one.failed);
}

// No directory is left that could name the holder: this process was given up, or the job ends.
void on_down(stand_in_pointer self, const caf::down_msg& down) {
  if (is_lost_node(down.reason) && !self->state.nobody) lose(self->state, from_caf(down.reason));
}

} // namespace

stand_in_actor::behavior_type stand_in(stand_in_pointer self, stand_in_config config) {
  self->state.config = std::move(config);
  auto& state = self->state;
  state.next_taken = state.config.first_step;
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  self->monitor(state.config.directory);
  auto question = make_follow_owner(state.config.variable, state.config.closes_steps);
  self
    ->request(state.config.directory, caf::infinite, question) // it answers, or is gone
    .then(
      [self](const msg<wire::OwnerFollowed>& said) {
        self->state.asker = said.reader().getAsker();
        ask_later_ones(self->state);
        seek_holder(self);
      },
      [self](const caf::error& reason) { lose(self->state, from_caf(reason)); });
  return {
    [self](const msg<wire::ReadVariable>& wanted) {
      return pass_on<wire::VariableSnapshot>(self, the_owner, wanted);
    },
    [self](const msg<wire::PullVariable>& wanted) {
      return pass_on<wire::VariableChanges>(self, the_owner, wanted);
    },
    [self](const msg<wire::ChangeVariable>& wanted) {
      return change_once<wire::VariableSnapshot>(self, wanted);
    },
    [self](const msg<wire::ReadAverage>& wanted) {
      return pass_on<wire::VariableSnapshot>(self, the_owner, wanted);
    },
    [self](const msg<wire::UseOptimizer>& wanted) {
      return pass_on<wire::OptimizerInUse>(self, the_owner, wanted);
    },
    [self](const msg<wire::ApplyUpdate>& wanted) {
      return change_once<wire::UpdateApplied>(self, wanted);
    },
    [self](const msg<wire::ReleaseUpdate>& wanted) {
      return pass_on<wire::UpdateApplied>(self, the_owner, wanted);
    },
    [self](const msg<wire::ReadState>& wanted) {
      return pass_on<wire::VariableState>(self, the_owner, wanted);
    },
    [self](const msg<wire::RestoreState>& wanted) {
      return pass_on<wire::OptimizerInUse>(self, the_owner, wanted);
    },
    [self](const msg<wire::PushGradient>& gradient) { return push(self, gradient); },
    [self](const msg<wire::TakeGradient>& request) { return take(self, request); },
    [self](const msg<wire::TakeAggregate>& request) {
      return pass_on<wire::Aggregate>(self, the_accumulator, request);
    },
    [self](const msg<wire::AwaitAggregate>& request) {
      return pass_on<wire::Aggregate>(self, the_accumulator, request);
    },
    [self](const msg<wire::CancelTakes>& said) { say(self, said); },
    [self](const msg<wire::CountMissing>& said) { say(self, said); },
    [self](const msg<wire::ReadAccumulator>& wanted) { return look(self, wanted); },
    [self](const msg<wire::SetStep>& set) { say(self, set); },
    [self](const msg<wire::TakenGradient>& taken) { on_taken(self, taken); },
    [self](const msg<wire::TookOver>& told) { return follow(self, told); },
    [self](const holder_found& news) { on_found(self, news); },
    [self](watch_tick) { on_tick(self); },
    [self](give_up) { on_patience_over(self->state); },
  };
}

} // namespace troupe
