// SPDX-License-Identifier: Apache-2.0
// The token queue: whom it answers, and when.
#include "actors/token_queue.hpp"

#include "messages/training_message.hpp"

#include <algorithm>

namespace troupe {

namespace {

using self_pointer = observed_pointer<token_queue_actor, token_queue_state>;

const error job_is_over{errc::cancelled, "the job is over"};

// They have passed the gate. Whoever waited for a slower replica is to see what that one gave.
void serve(token_queue_state& state, std::vector<token_queue_state::waiter> admitted,
           uint64_t not_before = 0) {
  for (auto& waiter : admitted) {
    auto promise = waiter.promise;
    auto local_step = waiter.local_step;
    auto needed = std::max(waiter.not_before, not_before);
    if (auto step = state.ledger.take(std::move(waiter), local_step, needed))
      promise.deliver(state.token(*step));
  }
}

caf::result<msg<wire::Token>> take(self_pointer self, const msg<wire::TakeToken>& request) {
  auto& state = self->state;
  if (state.closed) return to_caf(job_is_over);
  auto promise = self->make_response_promise<msg<wire::Token>>();
  auto asked = request.reader();
  token_queue_state::waiter waiter{asked.getReplica(), promise, asked.getLocalStep(),
                                   asked.getNotBefore()};
  if (state.policy == sync_policy::ssp) {
    serve(state, state.gate.arrive(asked.getReplica(), std::move(waiter)), asked.getNotBefore());
  } else if (auto step
             = state.ledger.take(std::move(waiter), asked.getLocalStep(), asked.getNotBefore())) {
    promise.deliver(state.token(*step));
  }
  return promise;
}

// Nobody waits for one that is gone.
void leave(token_queue_state& state, const msg<wire::Farewell>& farewell) {
  if (state.closed || state.policy != sync_policy::ssp) return;
  serve(state, state.gate.leave(farewell.reader().getReplica()));
}

void put(token_queue_state& state, const msg<wire::PutTokens>& tokens) {
  auto put = tokens.reader();
  auto token = state.token(put.getStep());
  for (auto& waiter : state.ledger.put(put.getStep(), put.getCount()))
    waiter.promise.deliver(token);
}

void close(token_queue_state& state) {
  state.closed = true;
  for (auto& waiter : state.gate.open())
    waiter.promise.deliver(to_caf(job_is_over));
  for (auto& waiter : state.ledger.close())
    waiter.promise.deliver(to_caf(job_is_over));
}

msg<wire::QueueStatus> status(const token_queue_state& state) {
  std::vector<uint32_t> waiting;
  for (const auto& [clock, waiter] : state.gate.waiting())
    waiting.push_back(waiter.replica);
  for (const auto& waiter : state.ledger.waiting())
    waiting.push_back(waiter.replica);
  std::vector<uint64_t> steps(state.ledger.tokens().begin(), state.ledger.tokens().end());
  return make_queue_status(steps, waiting);
}

} // namespace

msg<wire::Token> token_queue_state::token(uint64_t step) {
  if (step != newest_step || newest.is_empty()) {
    newest = make_token(step);
    newest_step = step;
  }
  return newest;
}

token_queue_actor::behavior_type token_queue(self_pointer self, token_queue_config config) {
  auto& state = self->state;
  state.policy = config.policy;
  state.ledger
    = token_ledger<token_queue_state::waiter>{config.policy, config.first_step, config.tokens};
  if (config.policy == sync_policy::ssp)
    state.gate = slack_gate<token_queue_state::waiter>{config.replicas, config.slack};
  return {
    [self](const msg<wire::TakeToken>& request) { return take(self, request); },
    [self](const msg<wire::PutTokens>& tokens) { put(self->state, tokens); },
    [self](const msg<wire::Farewell>& farewell) { leave(self->state, farewell); },
    [self](const msg<wire::CloseTokens>&) { close(self->state); },
    [self](const msg<wire::ReadQueueStatus>&) { return status(self->state); },
  };
}

} // namespace troupe
