// SPDX-License-Identifier: Apache-2.0
// The token queue: whom it answers, and when.
#include "actors/token_queue.hpp"

#include "messages/training_message.hpp"

namespace troupe {

namespace {

using self_pointer = observed_pointer<token_queue_actor, token_queue_state>;

const error job_is_over{errc::cancelled, "the job is over"};

caf::result<msg<wire::Token>> take(self_pointer self, const msg<wire::TakeToken>& request) {
  auto& state = self->state;
  if (state.closed) return to_caf(job_is_over);
  auto promise = self->make_response_promise<msg<wire::Token>>();
  auto asked = request.reader();
  if (auto step = state.ledger.take({asked.getReplica(), promise}, asked.getLocalStep()))
    promise.deliver(state.token(*step));
  return promise;
}

void put(token_queue_state& state, const msg<wire::PutTokens>& tokens) {
  auto put = tokens.reader();
  auto token = state.token(put.getStep());
  for (auto& waiter : state.ledger.put(put.getStep(), put.getCount()))
    waiter.promise.deliver(token);
}

void close(token_queue_state& state) {
  state.closed = true;
  for (auto& waiter : state.ledger.close())
    waiter.promise.deliver(to_caf(job_is_over));
}

msg<wire::QueueStatus> status(const token_queue_state& state) {
  std::vector<uint32_t> waiting;
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
  self->state.ledger
    = token_ledger<token_queue_state::waiter>{config.policy, config.first_step, config.tokens};
  return {
    [self](const msg<wire::TakeToken>& request) { return take(self, request); },
    [self](const msg<wire::PutTokens>& tokens) { put(self->state, tokens); },
    [self](const msg<wire::CloseTokens>&) { close(self->state); },
    [self](const msg<wire::ReadQueueStatus>&) { return status(self->state); },
  };
}

} // namespace troupe
