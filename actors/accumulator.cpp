// SPDX-License-Identifier: Apache-2.0
// The accumulator: judging pushes, serving takes.
#include "actors/accumulator.hpp"

#include "messages/assert.hpp"
#include "messages/training_message.hpp"

#include <utility>

namespace troupe {

namespace {

using self_pointer = accumulator_actor::stateful_pointer<accumulator_state>;

void serve(self_pointer self) {
  auto& state = self->state;
  while (state.can_serve()) {
    auto take = std::move(state.takes.front());
    state.takes.pop_front();
    auto [report, update] = state.close_step();
    self->send(caf::actor_cast<chief_actor>(take.asker), report);
    take.promise.delegate(state.config.owner, update);
  }
}

caf::result<msg<wire::PushReply>> push(self_pointer self, const msg<wire::PushGradient>& gradient) {
  auto reply = self->state.push(gradient, self->state.config.world->now());
  if (!reply) return to_caf(reply.error());
  serve(self);
  return std::move(*reply);
}

caf::result<msg<wire::UpdateApplied>> take(self_pointer self,
                                           const msg<wire::TakeGradient>& request) {
  auto required = request.reader().getRequired();
  if (required == 0)
    return to_caf({errc::invalid_argument, "Argument num_required must be positive: it is 0"});
  auto asker = self->current_sender(); // the promise takes the sender out of the message
  auto promise = self->make_response_promise<msg<wire::UpdateApplied>>();
  self->state.takes.push_back({required, asker, promise});
  serve(self);
  return promise;
}

} // namespace

expected<msg<wire::PushReply>> accumulator_state::push(const msg<wire::PushGradient>& gradient,
                                                       job_time now) {
  auto pushed = gradient.reader();
  arrival came{read_origin(pushed.getOrigin()), now, step};
  if (came.from.local_step < step) {
    stale_arrivals.push_back(came);
    return make_push_reply(verdict::stale, step);
  }
  if (auto fits = check_gradient(config.variable, pushed.getGradient()); !fits)
    return tl::unexpected<error>(fits.error());
  accepted.push_back(gradient);
  accepted_arrivals.push_back(came);
  if (accepted_reply.is_empty()) accepted_reply = make_push_reply(verdict::accepted, step);
  return accepted_reply;
}

accumulator_state::taken accumulator_state::close_step() {
  TROUPE_ASSERT(!accepted.empty());
  taken result{make_taken_gradient(step, accepted_arrivals, stale_arrivals),
               make_apply_update(step, 0, accepted)};
  accepted.clear();
  accepted_arrivals.clear();
  stale_arrivals.clear();
  accepted_reply = {};
  ++step;
  return result;
}

accumulator_actor::behavior_type accumulator(self_pointer self, accumulator_config config) {
  self->state.step = config.first_step;
  self->state.config = std::move(config);
  return {
    [self](const msg<wire::PushGradient>& gradient) { return push(self, gradient); },
    [self](const msg<wire::TakeGradient>& request) { return take(self, request); },
    [self](const msg<wire::SetStep>& set) {
      self->state.step = set.reader().getStep();
      self->state.accepted_reply = {};
    },
  };
}

} // namespace troupe
