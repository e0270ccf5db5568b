// SPDX-License-Identifier: Apache-2.0
// The closure worker, and the actor that hosts its coroutine.
#include "actors/coordinator/closure_worker.hpp"

#include "actors/training/replica.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/errors/failure.hpp"
#include "messages/training_message.hpp"

#include <fmt/format.h>
#include <memory>
#include <utility>

namespace troupe {

namespace {

using closure_worker_pointer = observed_pointer<closure_worker_actor, closure_worker_state>;
using call_message = msg<wire::RunClosure>;

task<msg<wire::ClosureDone>> answer(activity& activity, closure_function call,
                                    call_message message) {
  auto closure = message.reader().getClosure();
  try {
    auto calling = call(activity, message);
    auto results = co_await calling;
    co_return make_closure_done(closure, results);
  } catch (...) {
    co_return make_closure_failed(closure, reason_of(std::current_exception()));
  }
}

// The life of the host: it sleeps until there is a call.
task<void> live(activity& activity, closure_worker_actor worker, closure_function call,
                job_time start_delay) {
  if (start_delay > job_time{0}) {
    auto resting = activity.rest(start_delay);
    co_await resting;
  }
  activity.send(worker, closure_ended{});
  for (uint64_t calls = 1;; ++calls) {
    auto sleeping = activity.woken();
    auto message = co_await sleeping;
    activity.set_local_step(calls);
    auto answering = answer(activity, call, *std::static_pointer_cast<call_message>(message));
    message = nullptr;
    closure_ended ended;
    ended.answer = co_await answering;
    activity.send(worker, std::move(ended));
  }
}

void spawn_host(closure_worker_pointer self) {
  auto& state = self->state;
  replica_config config{.index = state.config.index, .world = state.config.world};
  config.body = [worker = caf::actor_cast<closure_worker_actor>(self->address()),
                 call = state.config.call, start_delay = state.config.start_delay](
                  activity& activity) { return live(activity, worker, call, start_delay); };
  state.host = self->spawn(replica, std::move(config));
  state.config.world->introduce(state.host.id(),
                                fmt::format("closures of worker {}", state.config.index));
  self->link_to(state.host);
}

caf::result<msg<wire::ClosureDone>> on_call(closure_worker_pointer self,
                                            const call_message& message) {
  auto& state = self->state;
  if (state.running)
    return to_caf({errc::failed_precondition,
                   fmt::format("worker {} runs another closure", state.config.index)});
  auto promise = self->make_response_promise<msg<wire::ClosureDone>>();
  state.running = closure_worker_state::call{message.reader().getClosure(), promise};
  ++state.calls;
  self->send(state.host, wake{std::make_shared<call_message>(message), nullptr});
  return promise;
}

void on_cancel(closure_worker_pointer self, uint64_t closure) {
  auto& state = self->state;
  if (state.running && state.running->closure == closure)
    self->send(state.host, make_cancel_step(state.calls + 1));
}

// The host is ready, or a call has ended. A worker that leaves does not answer: another one is to
// make its call.
void on_ended(closure_worker_pointer self, const msg<wire::ClosureDone>& answer) {
  auto& state = self->state;
  if (state.is_leaving)
    self->quit();
  else if (answer.is_empty())
    self->send(state.config.coordinator, make_worker_ready(state.config.index));
  else if (auto ended = std::exchange(state.running, std::nullopt))
    ended->done.deliver(answer);
}

// The worker ends after its call: a computation that goes on would outlive the world that it refers
// to.
void on_exit(closure_worker_pointer self, const caf::error& reason) {
  auto& state = self->state;
  if (reason != caf::exit_reason::user_shutdown || !state.running) return self->quit(reason);
  state.is_leaving = true;
  on_cancel(self, state.running->closure);
}

} // namespace

closure_worker_actor::behavior_type closure_worker(closure_worker_pointer self,
                                                   closure_worker_config config) {
  self->state.config = std::move(config);
  self->set_exit_handler([self](const caf::exit_msg& exit) { on_exit(self, exit.reason); });
  spawn_host(self);
  return {
    [self](const call_message& message) { return on_call(self, message); },
    [self](const msg<wire::CancelClosure>& cancel) {
      on_cancel(self, cancel.reader().getClosure());
    },
    [self](const closure_ended& ended) { on_ended(self, ended.answer); },
  };
}

} // namespace troupe
