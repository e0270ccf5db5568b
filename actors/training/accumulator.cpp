// SPDX-License-Identifier: Apache-2.0
// The accumulator: judging pushes, serving takes.
#include "actors/training/accumulator.hpp"

#include "actors/training/aggregate.hpp"
#include "messages/mapped.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace troupe {

namespace {

using accumulator_pointer = observed_pointer<bundle_accumulator_actor, accumulator_state>;
using update_promise = accumulator_state::update_promise;
using aggregate_promise = accumulator_state::aggregate_promise;

const error take_cancelled{errc::cancelled, "TakeGrad operation was cancelled"};

void serve(accumulator_pointer self) {
  auto& state = self->state;
  while (state.can_serve()) {
    auto take = std::move(state.takes.front());
    state.takes.pop_front();
    auto awaits = std::exchange(state.awaits, {});
    auto* aggregate = std::get_if<aggregate_promise>(&take.promise);
    auto closed = state.close_step(aggregate != nullptr || !awaits.empty(), take);
    for (auto& waiting : awaits)
      waiting.promise.deliver(closed.aggregate);
    if (aggregate != nullptr) {
      aggregate->deliver(closed.aggregate);
      continue;
    }
    self->send(caf::actor_cast<chief_actor>(take.asker), closed.report);
    auto& promise = std::get<update_promise>(take.promise);
    if (state.config.bundle)
      promise.delegate(state.config.bundle, std::move(closed.bundled));
    else
      promise.delegate(state.config.owner, closed.update);
  }
}

caf::result<msg<wire::PushReply>> push(accumulator_pointer self, push_bundle pushed) {
  auto reply = self->state.push(std::move(pushed), self->state.config.world->now());
  if (reply) serve(self);
  return to_result(std::move(reply));
}

// A replica may end while it waits for an aggregate. The chief does not: it ends the accumulator.
void watch(accumulator_pointer self, const caf::strong_actor_ptr& asker) {
  auto address = caf::actor_cast<caf::actor_addr>(asker);
  if (self->state.watched.insert(address).second) self->monitor(address);
}

// @param Reply Aggregate: the accumulator answers the take. UpdateApplied: the owner does.
template <class Reply>
caf::result<msg<Reply>> take(accumulator_pointer self, uint32_t required, bool hold = false,
                             bool measure = false) {
  if (required == 0)
    return to_caf({errc::invalid_argument, "Argument num_required must be positive: it is 0"});
  const auto& config = self->state.config;
  if (std::is_same_v<Reply, wire::UpdateApplied> && !config.owner && !config.bundle)
    return to_caf({errc::failed_precondition, "this accumulator has no owner to give gradients to; "
                                              "ask it for an aggregate"});
  if (config.bundle && measure)
    return to_caf({errc::unimplemented,
                   fmt::format("variable '{}' is updated together with others, and no owner "
                               "measures its gradients",
                               config.variable.name)});
  if constexpr (std::is_same_v<Reply, wire::Aggregate>)
    if (auto allowed = check_aggregates(config.variable.name, config.place); !allowed)
      return to_caf(allowed.error());
  auto asker = self->current_sender(); // the promise takes the sender out of the message
  if (std::is_same_v<Reply, wire::Aggregate>) watch(self, asker);
  auto promise = self->make_response_promise<msg<Reply>>();
  self->state.takes.push_back({required, hold, measure, asker, promise});
  serve(self);
  return promise;
}

caf::result<msg<wire::Aggregate>> await_aggregate(accumulator_pointer self, uint64_t step) {
  if (step < self->state.ledger.step())
    return to_caf({errc::out_of_range, "the step is over already"});
  const auto& config = self->state.config;
  if (auto allowed = check_aggregates(config.variable.name, config.place); !allowed)
    return to_caf(allowed.error());
  auto asker = self->current_sender();
  watch(self, asker);
  auto promise = self->make_response_promise<msg<wire::Aggregate>>();
  self->state.awaits.push_back({asker, promise});
  return promise;
}

void answer_cancelled(std::vector<accumulator_state::answer_promise> promises) {
  for (auto& each : promises)
    std::visit([](auto& promise) { promise.deliver(to_caf(take_cancelled)); }, each);
}

// A take that waited behind those of `asker` may have enough gradients.
void forget_asker(accumulator_pointer self, const caf::actor_addr& asker) {
  answer_cancelled(self->state.forget(&asker));
  serve(self);
}

void cancel(accumulator_pointer self, wire::CancelTakes::Reader request) {
  const auto& asker = self->current_sender();
  auto at_most = request.getAtMost();
  if (at_most == 0) return forget_asker(self, caf::actor_cast<caf::actor_addr>(asker));
  self->state.lower_takes(asker, request.getStep(), at_most);
  serve(self);
}

void on_down(accumulator_pointer self, const caf::down_msg& down) {
  self->state.watched.erase(down.source);
  forget_asker(self, down.source);
}

// Callers that wait are told before the accumulator ends.
void leave(accumulator_pointer self, caf::exit_msg& exit) {
  answer_cancelled(self->state.forget());
  if (self->state.config.bundle) self->send_exit(self->state.config.bundle, exit.reason);
  self->quit(std::move(exit.reason));
}

// An accumulator whose mirror takes over forgets the gradients that came before: their replicas
// give them again.
void set_step(accumulator_state& state, uint64_t step) {
  state.ledger.set_step(step);
  state.accepted_reply = {};
  if (!state.config.owner_is_replicated) return;
  state.accepted.clear();
  state.ledger.forget();
  state.remembered.clear();
}

// A replica gives one gradient after the other, and has the answers to all earlier ones.
request_id request_of(const origin& from) {
  return {from.replica, from.iteration, from.iteration};
}

// The first gradient of a bundle stands for the others: they have one origin.
wire::PushGradient::Reader first_of(const push_bundle& pushed) {
  return pushed.gradients.front().reader();
}

uint64_t examples_of(std::span<const push_bundle> gradients) {
  uint64_t sum = 0;
  for (const auto& one : gradients)
    sum += first_of(one).getOrigin().getExamples();
  return sum;
}

// @pre Each push has the gradient of one variable.
std::vector<msg<wire::PushGradient>> single_gradients(std::vector<push_bundle> pushes) {
  std::vector<msg<wire::PushGradient>> gradients;
  for (auto& push : pushes)
    gradients.push_back(std::move(push.gradients.front()));
  return gradients;
}

} // namespace

expected<void> check_aggregates(const std::string& variable, device place) {
  if (place.kind == device_kind::cpu) return {};
  return fail(
    errc::unimplemented,
    fmt::format("the gradients of variable '{}' stay on {}, and read_aggregates adds them "
                "up on the host; leave variable_devices empty, or read_aggregates off",
                variable, to_string(place)));
}

expected<void> accumulator_state::check(const push_bundle& pushed) const {
  if (config.gradients_are_sums)
    if (auto counted = check_examples(read_origin(first_of(pushed).getOrigin())); !counted)
      return counted;
  for (size_t i = 0; i < pushed.gradients.size(); ++i) {
    const auto& variable = i == 0 ? config.variable : config.behind[i - 1];
    auto given = pushed.gradients[i].reader().getGradient();
    if (auto fits = i == 0 ? check_form(given) : check_gradient(variable, given); !fits)
      return fits;
    if (!config.requires_finite) continue;
    auto value = *read_gradient(given, pushed.gradients[i].owner());
    if (auto finite = check_finite(variable.name, value); !finite) return finite;
  }
  return {};
}

// The divisor of an update has 32 bits.
expected<void> accumulator_state::check_examples(const origin& from) const {
  if (from.examples == 0)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}': losses_are_sums divides by the examples of a gradient, "
                            "and replica {} reports none; call context.report(loss, examples) "
                            "before apply_gradients, or give minimize the examples",
                            config.variable.name, from.replica));
  if (examples_of(accepted) + from.examples <= std::numeric_limits<uint32_t>::max()) return {};
  return fail(errc::invalid_argument,
              fmt::format("variable '{}': the gradients of a step are of more than 2^32 - 1 "
                          "examples; let losses be means",
                          config.variable.name));
}

expected<void> accumulator_state::check_form(wire::Gradient::Reader gradient) const {
  if (!config.form) return check_gradient(config.variable, gradient);
  if (accepted.empty()) return check_gradient(*config.form, gradient, nullptr);
  auto first = accumulated_shape(first_of(accepted.front()).getGradient());
  return check_gradient(*config.form, gradient, &first);
}

// The reply to a gradient that came before; nothing, if it is new. A gradient older than its
// replica's last one was overtaken by its own repetition.
std::optional<msg<wire::PushReply>> accumulator_state::former_reply(const origin& from) const {
  if (const auto* known = remembered.find(request_of(from))) return *known;
  if (remembered.is_over(request_of(from))) return make_push_reply(verdict::stale, ledger.step());
  return std::nullopt;
}

expected<msg<wire::PushReply>> accumulator_state::push(push_bundle pushed, job_time now) {
  if (auto needed = 1 + config.behind.size(); pushed.gradients.size() != needed)
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' and those updated with it are {}, and {} gradients were "
                            "given; give one for each, in one call of apply_gradients",
                            config.variable.name, needed, pushed.gradients.size()));
  auto from = read_origin(first_of(pushed).getOrigin());
  if (!config.remembers) return judge(std::move(pushed), from, now);
  if (auto former = former_reply(from)) return *former;
  auto reply = judge(std::move(pushed), from, now);
  if (reply) remembered.add(request_of(from), *reply);
  return reply;
}

expected<msg<wire::PushReply>> accumulator_state::judge(push_bundle pushed, const origin& from,
                                                        job_time now) {
  if (ledger.drop_if_late(from, now)) return make_push_reply(verdict::stale, ledger.step());
  if (auto fits = check(pushed); !fits) return tl::unexpected<error>(fits.error());
  accepted.push_back(std::move(pushed));
  return reply_to_accepted(ledger.accept(from, now));
}

// Where training is synchronous, all replicas of a step get the same reply.
msg<wire::PushReply> accumulator_state::reply_to_accepted(uint64_t next_step) {
  if (config.asynchronous) return make_push_reply(verdict::accepted, ledger.step(), next_step);
  if (accepted_reply.is_empty())
    accepted_reply = make_push_reply(verdict::accepted, ledger.step(), next_step);
  return accepted_reply;
}

msg<wire::Aggregate> accumulator_state::sum_up(uint64_t step,
                                               const msg<wire::ApplyUpdate>& update) const {
  auto gradients = mapped(update.reader().getGradients(),
                          [&](auto given) { return *read_gradient(given, update.owner()); });
  auto declared = config.form ? config.form->declared.value_or(shape{}) : config.variable.extents;
  if (gradients.empty()) // all are missing
    return make_aggregate(step, 0, zeros(declared, config.variable.type));
  return make_aggregate(step, static_cast<uint32_t>(gradients.size()),
                        aggregate(gradients, update.reader().getDivisor(), declared));
}

std::vector<push_bundle> accumulator_state::take_first(size_t count) {
  auto end = accepted.begin() + static_cast<ptrdiff_t>(count);
  std::vector<push_bundle> first{std::make_move_iterator(accepted.begin()),
                                 std::make_move_iterator(end)};
  accepted.erase(accepted.begin(), end);
  return first;
}

accumulator_state::taken accumulator_state::close_step(bool aggregates, const pending_take& take) {
  uint32_t divisor = config.reduction_type == reduction::sum ? 1 : 0;
  auto step = ledger.step();
  auto closed = ledger.close_step(take.required);
  auto gradients = take_first(closed.accepted.size());
  if (config.gradients_are_sums) divisor = static_cast<uint32_t>(examples_of(gradients));
  accepted_reply = {};
  taken result{.report = make_taken_gradient(step, closed.accepted, closed.stale)};
  if (config.bundle) {
    std::ranges::stable_sort(gradients, {}, [](const push_bundle& pushed) {
      return place_in_update(pushed.gradients.front());
    });
    result.bundled = {step, divisor, std::move(gradients), take.hold};
    return result;
  }
  auto report_for_owner = config.owner_is_replicated ? result.report : msg<wire::TakenGradient>{};
  result.update = make_apply_update(step, divisor, single_gradients(std::move(gradients)),
                                    take.hold, take.measure, report_for_owner);
  if (aggregates) result.aggregate = sum_up(step, result.update);
  return result;
}

void accumulator_state::lower_takes(const caf::strong_actor_ptr& asker, uint64_t of_step,
                                    uint32_t at_most) {
  if (of_step != ledger.step()) return; // closed, with as many as it needed
  for (auto& take : takes)
    if (take.asker == asker) take.required = std::min(take.required, at_most);
}

std::vector<accumulator_state::answer_promise>
accumulator_state::forget(const caf::actor_addr* asker) {
  std::vector<answer_promise> promises;
  auto forget_in = [&](auto& list) {
    std::erase_if(list, [&](const auto& pending) {
      auto is_forgotten = asker == nullptr || *asker == pending.asker;
      if (is_forgotten) promises.emplace_back(pending.promise);
      return is_forgotten;
    });
  };
  forget_in(takes);
  forget_in(awaits);
  return promises;
}

msg<wire::AccumulatorStatus> accumulator_state::status() const {
  return make_accumulator_status(ledger.step(), static_cast<uint32_t>(ledger.given()),
                                 static_cast<uint32_t>(takes.size()));
}

bundle_accumulator_actor::behavior_type accumulator(accumulator_pointer self,
                                                    accumulator_config config) {
  self->state.ledger
    = gradient_ledger{config.first_step, config.one_gradient_per_replica, config.asynchronous};
  self->state.config = std::move(config);
  self->set_exit_handler([self](caf::exit_msg& exit) { leave(self, exit); });
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  return {
    [self](const msg<wire::PushGradient>& gradient) { return push(self, {{gradient}}); },
    [self](const msg<wire::TakeGradient>& request) {
      auto body = request.reader();
      return take<wire::UpdateApplied>(self, body.getRequired(), body.getHold(), body.getMeasure());
    },
    [self](const msg<wire::TakeAggregate>& request) {
      return take<wire::Aggregate>(self, request.reader().getRequired());
    },
    [self](const msg<wire::AwaitAggregate>& request) {
      return await_aggregate(self, request.reader().getStep());
    },
    [self](const msg<wire::CancelTakes>& request) { cancel(self, request.reader()); },
    [self](const msg<wire::CountMissing>& missing) {
      self->state.ledger.count_missing(missing.reader().getGradients(), missing.reader().getStep());
      serve(self);
    },
    [self](const msg<wire::ReadAccumulator>&) { return self->state.status(); },
    [self](const msg<wire::SetStep>& set) { set_step(self->state, set.reader().getStep()); },
    [self](const push_bundle& pushed) { return push(self, pushed); },
  };
}

} // namespace troupe
