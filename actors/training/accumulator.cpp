// SPDX-License-Identifier: Apache-2.0
// The accumulator: judging pushes, serving takes.
#include "actors/training/accumulator.hpp"

#include "actors/training/aggregate.hpp"
#include "messages/assert.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

using accumulator_pointer = observed_pointer<accumulator_actor, accumulator_state>;
using update_promise = accumulator_state::update_promise;
using aggregate_promise = accumulator_state::aggregate_promise;

const error take_cancelled{errc::cancelled, "TakeGrad operation was cancelled"};

void serve(accumulator_pointer self) {
  auto& state = self->state;
  while (state.can_serve()) {
    auto take = std::move(state.takes.front());
    state.takes.pop_front();
    auto awaits = std::exchange(state.awaits, {});
    auto* asked = std::get_if<aggregate_promise>(&take.promise);
    auto [report, update, aggregate] = state.close_step(asked != nullptr || !awaits.empty(), take);
    for (auto& waiting : awaits)
      waiting.promise.deliver(aggregate);
    if (asked != nullptr) {
      asked->deliver(aggregate);
    } else {
      self->send(caf::actor_cast<chief_actor>(take.asker), report);
      std::get<update_promise>(take.promise).delegate(state.config.owner, update);
    }
  }
}

caf::result<msg<wire::PushReply>> push(accumulator_pointer self,
                                       const msg<wire::PushGradient>& gradient) {
  auto reply = self->state.push(gradient, self->state.config.world->now());
  if (!reply) return to_caf(reply.error());
  serve(self);
  return std::move(*reply);
}

// The answer to a take comes from here or from the owner, as `Reply` says.
template <class Reply>
caf::result<msg<Reply>> take(accumulator_pointer self, uint32_t required, bool hold = false,
                             bool measure = false) {
  if (required == 0)
    return to_caf({errc::invalid_argument, "Argument num_required must be positive: it is 0"});
  if (std::is_same_v<Reply, wire::UpdateApplied> && !self->state.config.owner)
    return to_caf({errc::failed_precondition, "this accumulator has no owner to give gradients to; "
                                              "ask it for an aggregate"});
  auto asker = self->current_sender(); // the promise takes the sender out of the message
  auto promise = self->make_response_promise<msg<Reply>>();
  self->state.takes.push_back({required, hold, measure, asker, promise});
  serve(self);
  return promise;
}

caf::result<msg<wire::Aggregate>> await_aggregate(accumulator_pointer self, uint64_t step) {
  if (step < self->state.step) return to_caf({errc::out_of_range, "the step is over already"});
  auto asker = self->current_sender();
  auto promise = self->make_response_promise<msg<wire::Aggregate>>();
  self->state.awaits.push_back({asker, promise});
  return promise;
}

template <class Takes, class Awaits>
void answer_cancelled(Takes takes, Awaits awaits) {
  for (auto& take : takes)
    std::visit([](auto& promise) { promise.deliver(to_caf(take_cancelled)); }, take.promise);
  for (auto& waiting : awaits)
    waiting.promise.deliver(to_caf(take_cancelled));
}

void cancel(accumulator_pointer self, wire::CancelTakes::Reader said) {
  const auto& asker = self->current_sender();
  if (said.getAtMost() > 0)
    self->state.lower_takes(asker, said.getStep(), said.getAtMost());
  else
    answer_cancelled(self->state.forget_takes(asker), self->state.forget_awaits(asker));
  serve(self); // one that waited behind it may have enough
}

// No caller waits for an accumulator that is no more.
void leave(accumulator_pointer self, caf::exit_msg& exit) {
  answer_cancelled(std::exchange(self->state.takes, {}), std::exchange(self->state.awaits, {}));
  self->quit(std::move(exit.reason));
}

// What came before a mirror took over was given to the wrong one, and is given again.
void set_step(accumulator_state& state, uint64_t step) {
  state.step = step;
  state.accepted_reply = {};
  if (!state.config.owner_is_replicated) return;
  state.accepted.clear();
  state.accepted_arrivals.clear();
  state.stale_arrivals.clear();
  state.missing = 0;
  state.remembered.clear();
}

// A replica gives one gradient after the other, and has the answers to all earlier ones.
request_id request_of(const origin& from) {
  return {from.replica, from.iteration, from.iteration};
}

template <class List>
auto forget(List& list, const caf::strong_actor_ptr& asker) {
  std::vector<typename List::value_type> forgotten;
  List others;
  for (auto& one : list)
    if (one.asker == asker)
      forgotten.push_back(std::move(one));
    else
      others.push_back(std::move(one));
  list = std::move(others);
  return forgotten;
}

} // namespace

bool accumulator_state::is_repeated(const origin& from) const {
  return config.one_gradient_per_replica
         && std::ranges::any_of(
           accepted_arrivals, [&](const arrival& one) { return one.from.replica == from.replica; });
}

expected<void> accumulator_state::check(const msg<wire::PushGradient>& pushed) const {
  auto given = pushed.reader().getGradient();
  if (auto fits = check_form(given); !fits || !config.requires_finite) return fits;
  return check_finite(config.variable.name, *read_gradient(given, pushed.owner()));
}

expected<void> accumulator_state::check_form(wire::Gradient::Reader gradient) const {
  if (!config.form) return check_gradient(config.variable, gradient);
  if (accepted.empty()) return check_gradient(*config.form, gradient, nullptr);
  auto first = accumulated_shape(accepted.front().reader().getGradient());
  return check_gradient(*config.form, gradient, &first);
}

// A gradient older than the last one is one that was overtaken by its repetition.
std::optional<msg<wire::PushReply>> accumulator_state::said_before(const origin& from) const {
  if (const auto* known = remembered.find(request_of(from))) return *known;
  if (remembered.is_over(request_of(from))) return make_push_reply(verdict::stale, step);
  return std::nullopt;
}

expected<msg<wire::PushReply>> accumulator_state::push(const msg<wire::PushGradient>& gradient,
                                                       job_time now) {
  auto from = read_origin(gradient.reader().getOrigin());
  if (!config.remembers) return judge(gradient, from, now);
  if (auto said = said_before(from)) return *said;
  auto reply = judge(gradient, from, now);
  if (reply) remembered.add(request_of(from), *reply);
  return reply;
}

expected<msg<wire::PushReply>> accumulator_state::judge(const msg<wire::PushGradient>& gradient,
                                                        const origin& from, job_time now) {
  arrival came{from, now, step};
  auto repeated = is_repeated(came.from);
  auto is_stale = came.from.local_step < step && !config.asynchronous;
  if (is_stale || repeated) {
    if (repeated) came.accumulator_step = step + 1; // only the next step could have used it
    stale_arrivals.push_back(came);
    return make_push_reply(verdict::stale, step);
  }
  if (auto fits = check(gradient); !fits) return tl::unexpected<error>(fits.error());
  accepted.push_back(gradient);
  accepted_arrivals.push_back(came);
  return reply_to_accepted();
}

msg<wire::PushReply> accumulator_state::reply_to_accepted() {
  if (config.asynchronous)
    return make_push_reply(verdict::accepted, step, config.asynchronous->next_step(step, given()));
  if (accepted_reply.is_empty())
    accepted_reply
      = make_push_reply(verdict::accepted, step, config.one_gradient_per_replica ? step + 1 : 0);
  return accepted_reply;
}

msg<wire::Aggregate> accumulator_state::sum_up(const msg<wire::ApplyUpdate>& update) const {
  std::vector<gradient> gradients;
  for (auto given : update.reader().getGradients())
    gradients.push_back(*read_gradient(given, update.owner()));
  auto declared = config.form ? config.form->declared.value_or(shape{}) : config.variable.extents;
  if (gradients.empty()) // all are missing
    return make_aggregate(step, 0, zeros(declared, config.variable.type));
  return make_aggregate(step, static_cast<uint32_t>(gradients.size()),
                        aggregate(gradients, config.how, declared));
}

accumulator_state::closing accumulator_state::take_first(uint32_t required) {
  auto count = static_cast<ptrdiff_t>(accepted.size());
  if (config.asynchronous && required > 0) {
    count = std::min<ptrdiff_t>(count, required);
    missing -= required - static_cast<uint64_t>(count);
  }
  closing first{
    {std::make_move_iterator(accepted.begin()), std::make_move_iterator(accepted.begin() + count)},
    {accepted_arrivals.begin(), accepted_arrivals.begin() + count}};
  accepted.erase(accepted.begin(), accepted.begin() + count);
  accepted_arrivals.erase(accepted_arrivals.begin(), accepted_arrivals.begin() + count);
  for (auto& one : first.arrivals)
    one.accumulator_step = step; // it may have come for an earlier one
  return first;
}

accumulator_state::taken accumulator_state::close_step(bool aggregates, const pending_take& take) {
  TROUPE_ASSERT(given() >= take.required, take.required);
  uint32_t divisor = config.how == reduction::sum ? 1 : 0;
  auto [gradients, arrivals] = take_first(take.required);
  auto report = make_taken_gradient(step, arrivals, stale_arrivals);
  auto told = config.owner_is_replicated ? report : msg<wire::TakenGradient>{};
  taken result{report, make_apply_update(step, divisor, gradients, take.hold, take.measure, told)};
  if (aggregates) result.aggregate = sum_up(result.update);
  stale_arrivals.clear();
  accepted_reply = {};
  ++step;
  return result;
}

void accumulator_state::count_missing(uint32_t gradients, uint64_t of_step) {
  if (config.asynchronous && of_step == step) missing += gradients;
}

void accumulator_state::lower_takes(const caf::strong_actor_ptr& asker, uint64_t of_step,
                                    uint32_t at_most) {
  if (of_step != step) return; // closed, with as many as it needed
  for (auto& take : takes)
    if (take.asker == asker) take.required = std::min(take.required, at_most);
}

std::vector<accumulator_state::pending_take>
accumulator_state::forget_takes(const caf::strong_actor_ptr& asker) {
  return forget(takes, asker);
}

std::vector<accumulator_state::pending_await>
accumulator_state::forget_awaits(const caf::strong_actor_ptr& asker) {
  return forget(awaits, asker);
}

msg<wire::AccumulatorStatus> accumulator_state::status() const {
  return make_accumulator_status(step, static_cast<uint32_t>(given()),
                                 static_cast<uint32_t>(takes.size()));
}

accumulator_actor::behavior_type accumulator(accumulator_pointer self, accumulator_config config) {
  self->state.step = config.first_step;
  self->state.config = std::move(config);
  self->set_exit_handler([self](caf::exit_msg& exit) { leave(self, exit); });
  return {
    [self](const msg<wire::PushGradient>& gradient) { return push(self, gradient); },
    [self](const msg<wire::TakeGradient>& request) {
      auto asked = request.reader();
      return take<wire::UpdateApplied>(self, asked.getRequired(), asked.getHold(),
                                       asked.getMeasure());
    },
    [self](const msg<wire::TakeAggregate>& request) {
      return take<wire::Aggregate>(self, request.reader().getRequired());
    },
    [self](const msg<wire::AwaitAggregate>& request) {
      return await_aggregate(self, request.reader().getStep());
    },
    [self](const msg<wire::CancelTakes>& said) { cancel(self, said.reader()); },
    [self](const msg<wire::CountMissing>& said) {
      self->state.count_missing(said.reader().getGradients(), said.reader().getStep());
      serve(self);
    },
    [self](const msg<wire::ReadAccumulator>&) { return self->state.status(); },
    [self](const msg<wire::SetStep>& set) { set_step(self->state, set.reader().getStep()); },
  };
}

} // namespace troupe
