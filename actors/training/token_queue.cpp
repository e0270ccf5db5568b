// SPDX-License-Identifier: Apache-2.0
// The token queue's handlers: which request gets a token, and when.
#include "actors/training/token_queue.hpp"

#include "messages/training_message.hpp"

#include <utility>

namespace troupe {

namespace {

using token_queue_pointer = observed_pointer<token_queue_actor, token_queue_state>;

const error job_is_over{errc::cancelled, "the job is over"};
const error overtaken{errc::failed_precondition, "a later question of this replica came before"};

using waiter = token_queue_state::waiter;

// A replica that is gone must not take a token along.
void watch(token_queue_pointer self, const caf::actor_addr& address) {
  auto& state = self->state;
  if (state.config.watches && state.watched.insert(address).second) self->monitor(address);
}

void on_down(token_queue_state& state, const caf::actor_addr& address) {
  state.watched.erase(address);
  state.ledger.forget([&address](const waiter& one) { return one.address == address; });
}

// A replica asks one question after the other, and has the answers to all earlier ones.
request_id request_of(const waiter& asker) {
  return {asker.replica, asker.request, asker.request};
}

// Whether a question was asked before. If so it is answered as before, or waits in the place of the
// first.
bool is_repeated(token_queue_state& state, waiter& asker) {
  if (!state.config.remembers || asker.request == 0) return false;
  const auto* known = state.questions.find(request_of(asker));
  if (known == nullptr && !state.questions.is_over(request_of(asker))) {
    state.questions.add(request_of(asker), std::nullopt);
    return false;
  }
  auto is_same = [&asker](const waiter& one) {
    return one.replica == asker.replica && one.request == asker.request;
  };
  if (known == nullptr)
    asker.promise.deliver(to_caf(overtaken));
  else if (*known)
    asker.promise.deliver(state.token(**known));
  else if (auto* held = state.gate.find_waiter(is_same))
    *held = asker;
  else if (auto* first = state.ledger.find_waiter(is_same))
    *first = asker;
  return true;
}

void grant(token_queue_state& state, waiter& to, uint64_t step) {
  if (state.config.remembers) state.questions.add(request_of(to), step);
  to.promise.deliver(state.token(step));
}

void serve(token_queue_state& state, std::vector<waiter> admitted, uint64_t not_before = 0) {
  for (auto& [waiter, step] : state.ledger.take_all(std::move(admitted), not_before))
    grant(state, waiter, step);
}

caf::result<msg<wire::Token>> take(token_queue_pointer self, const msg<wire::TakeToken>& request) {
  auto& state = self->state;
  if (state.closed) return to_caf(job_is_over);
  auto body = request.reader();
  caf::actor_addr address;
  if (state.config.watches) address = caf::actor_cast<caf::actor_addr>(self->current_sender());
  auto promise = self->make_response_promise<msg<wire::Token>>();
  waiter asker{body.getReplica(),   address,          promise, body.getLocalStep(),
               body.getNotBefore(), body.getRequest()};
  if (is_repeated(state, asker)) return promise;
  if (traits_of(state.config.policy).keeps_pace())
    serve(state, state.gate.arrive(asker.replica, asker), asker.not_before);
  else if (auto step = state.ledger.take(asker, asker.local_step, asker.not_before))
    grant(state, asker, *step);
  else
    watch(self, address);
  return promise;
}

// A replica has left: those that wait for its clock go on.
void leave(token_queue_state& state, const msg<wire::Farewell>& farewell) {
  if (state.closed || !traits_of(state.config.policy).keeps_pace()) return;
  serve(state, state.gate.leave(farewell.reader().getReplica()));
}

void put(token_queue_state& state, const msg<wire::PutTokens>& tokens) {
  auto made = tokens.reader();
  for (auto& [waiter, step] : state.ledger.put(made.getStep(), made.getCount()))
    grant(state, waiter, step);
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

token_queue_actor::behavior_type token_queue(token_queue_pointer self, token_queue_config config) {
  auto& state = self->state;
  state.ledger = token_ledger<waiter>{config.policy, config.first_step, config.tokens};
  if (traits_of(config.policy).keeps_pace())
    state.gate = slack_gate<waiter>{config.replicas, config.slack};
  if (config.watches)
    self->set_down_handler(
      [self](const caf::down_msg& down) { on_down(self->state, down.source); });
  state.config = std::move(config);
  return {
    [self](const msg<wire::TakeToken>& request) { return take(self, request); },
    [self](const msg<wire::PutTokens>& tokens) { put(self->state, tokens); },
    [self](const msg<wire::Farewell>& farewell) { leave(self->state, farewell); },
    [self](const msg<wire::CloseTokens>&) { close(self->state); },
    [self](const msg<wire::ReadQueueStatus>&) { return status(self->state); },
  };
}

} // namespace troupe
