// SPDX-License-Identifier: Apache-2.0
// The coordinator's handlers, and the effects of each event on closures, callers and workers.
#include "actors/coordinator/coordinator.hpp"

#include "messages/errors/users_code.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

const error closure_cancelled{errc::cancelled,
                              "The corresponding function is cancelled. Please reschedule the "
                              "function."};

void queue_gauge::come(uint32_t worker) {
  std::lock_guard guard{mutex_};
  there_.insert(worker);
}

void queue_gauge::begin(uint32_t worker, std::string function) {
  std::lock_guard guard{mutex_};
  run_[worker] = std::move(function);
}

void queue_gauge::end(uint32_t worker) {
  std::lock_guard guard{mutex_};
  ended_ += run_.erase(worker);
}

void queue_gauge::lose(uint32_t worker) {
  std::lock_guard guard{mutex_};
  run_.erase(worker);
  there_.erase(worker);
}

uint64_t queue_gauge::ended() const {
  std::lock_guard guard{mutex_};
  return ended_;
}

std::string queue_gauge::awaited() const {
  std::lock_guard guard{mutex_};
  std::string all;
  for (const auto& [worker, function] : run_)
    all
      += fmt::format("{}worker {} to return from '{}'", all.empty() ? "" : ", ", worker, function);
  auto queued = taken.load();
  if (all.empty() && there_.empty())
    all = "a worker to come";
  else if (all.empty())
    all = queued == 0 ? "the coordinator to answer" : "a worker to begin";
  return queued == 0
           ? all
           : fmt::format("{}, with {}{} queued", all, queued, run_.empty() ? "" : " more");
}

namespace {

using coordinator_pointer = observed_pointer<coordinator_actor, coordinator_state>;

// ---- closures ----

void settle(coordinator_state& state, uint64_t closure,
            expected<std::vector<closure_value>> result) {
  auto ended = state.closures.extract(closure);
  if (!ended.empty()) ended.mapped().settle(std::move(result));
}

void cancel(coordinator_state& state, const std::vector<uint64_t>& closures) {
  for (auto closure : closures)
    settle(state, closure, tl::unexpected<error>(closure_cancelled));
  state.config.gauge->taken -= closures.size();
}

// Puts a closure, which has a place in the gauge already, into the queue.
void put(coordinator_state& state, schedule_closure closure) {
  auto number = ++state.scheduled;
  state.closures.emplace(number, std::move(closure));
  if (state.ending || !state.queue->put(number)) cancel(state, {number});
}

// The arguments of a closure for one worker. Where each worker has an argument of its own, it gets
// that one.
std::vector<closure_value> arguments_for(uint32_t worker, const schedule_closure& closure) {
  std::vector<closure_value> arguments;
  for (const auto& argument : closure.arguments) {
    const auto* each = std::get_if<std::vector<std::vector<closure_value>>>(&argument);
    const auto& leaves
      = each != nullptr ? each->at(worker) : std::get<std::vector<closure_value>>(argument);
    arguments.insert(arguments.end(), leaves.begin(), leaves.end());
  }
  return arguments;
}

void cancel_in_flight(coordinator_pointer self) {
  for (const auto& [index, worker] : self->state.workers)
    if (worker.runs) self->send(worker.handle, make_cancel_closure(*worker.runs));
}

// ---- callers that wait ----

void let_in(coordinator_state& state) {
  while (!state.waiting_for_room.empty() && !state.queue->is_full()) {
    auto next = std::move(state.waiting_for_room.front());
    state.waiting_for_room.pop_front();
    if (!std::exchange(next.admitted, {})({})) continue;
    ++state.config.gauge->taken;
    put(state, std::move(next));
  }
}

// Tells one of the callers that wait the reason; false if none waits.
bool tell_caller(coordinator_state& state, const error& reason) {
  while (!state.waiting_for_room.empty()) {
    auto refused = std::move(state.waiting_for_room.front());
    state.waiting_for_room.pop_front();
    refused.settle(tl::unexpected<error>(closure_cancelled));
    if (refused.admitted(tl::unexpected<error>(reason))) return true;
  }
  while (!state.waiting_for_end.empty()) {
    auto caller = std::move(state.waiting_for_end.front());
    state.waiting_for_end.erase(state.waiting_for_end.begin());
    if (caller.tell(tl::unexpected<error>(reason))) return true;
  }
  return false;
}

// Tells one of the callers that wait the error, if there is one.
bool raise(coordinator_state& state) {
  auto reason = state.queue->take_error();
  if (!reason) return false;
  auto is_told = tell_caller(state, *reason);
  if (is_told)
    state.config.gauge->has_failed = false;
  else
    state.queue->keep_error(std::move(*reason));
  return is_told;
}

// Answers all callers if no closure is left, else those that do not wait for that.
void answer_callers(coordinator_state& state) {
  auto all_done = state.queue->is_idle();
  auto waits = [&](const await_closures& caller) { return !all_done && caller.until_all_are_done; };
  auto& callers = state.waiting_for_end;
  auto ready = std::stable_partition(callers.begin(), callers.end(), waits);
  std::vector<await_closures> answered{std::make_move_iterator(ready),
                                       std::make_move_iterator(callers.end())};
  callers.erase(ready, callers.end());
  for (const auto& caller : answered)
    caller.tell(all_done);
}

void finish(coordinator_pointer self) {
  auto& state = self->state;
  for (auto& [process, bystander] : state.bystanders)
    bystander.deliver(make_service_ended());
  if (state.ending->tell) state.ending->tell();
  self->quit();
}

// ---- workers ----

void on_answer(coordinator_pointer self, uint32_t index, const closure_worker_actor& handle,
               uint64_t number, const expected<msg<wire::ClosureDone>>& outcome);

void give(coordinator_pointer self, uint32_t index, uint64_t number) {
  auto& state = self->state;
  const auto& closure = state.closures.at(number);
  auto& worker = state.workers.at(index);
  worker.runs = number;
  state.config.gauge->begin(index, closure.function);
  auto message = make_run_closure(number, closure.function, arguments_for(index, closure),
                                  state.config.instances->all());
  auto answered = [self, index, handle = worker.handle,
                   number](const expected<msg<wire::ClosureDone>>& outcome) {
    on_answer(self, index, handle, number, outcome);
  };
  self
    ->request(worker.handle, caf::infinite, message) // a function may take any time
    .then(
      [answered](const msg<wire::ClosureDone>& done) { answered(done); },
      [answered](const caf::error& reason) { answered(tl::unexpected<error>(from_caf(reason))); });
}

// Cancels the queued closures, and refuses all callers that wait.
void turn_away(coordinator_state& state, const error& reason) {
  const tl::unexpected<error> refusal{reason};
  cancel(state, state.queue->cancel_queued());
  for (auto& refused : std::exchange(state.waiting_for_room, {})) {
    refused.settle(refusal);
    refused.admitted(refusal);
  }
  for (auto& caller : std::exchange(state.waiting_for_end, {}))
    caller.tell(refusal);
}

// Goes on after any event: ends the service, tells an error, or gives closures to idle workers.
void go_on(coordinator_pointer self) {
  auto& state = self->state;
  if (state.ending) {
    // A process that has not come yet would look for a coordinator that is gone.
    auto all_were_there = state.bystanders.size() >= state.config.bystanders;
    if (state.queue->in_flight().empty() && all_were_there) finish(self);
    return;
  }
  if (state.stranded) return turn_away(state, *state.stranded);
  while (state.queue->has_failed())
    if (!raise(state)) return;
  let_in(state);
  while (!state.idle.empty()) {
    auto next = state.queue->take();
    if (!next) break;
    --state.config.gauge->taken;
    auto index = state.idle.front();
    state.idle.pop_front();
    give(self, index, *next);
    let_in(state);
  }
  answer_callers(state);
}

// A worker is lost: its closure goes to another one.
void lose(coordinator_pointer self, uint32_t index, const error& reason) {
  auto& state = self->state;
  auto lost = state.workers.extract(index);
  if (lost.empty()) return;
  std::erase(state.idle, index);
  ++state.losses[index];
  auto runs = lost.mapped().runs;
  std::string_view consequence = "others go on";
  state.config.gauge->lose(index);
  if (runs) {
    ++state.config.gauge->taken;
    consequence = "another one runs what it ran";
    if (state.ending || state.stranded || !state.queue->put_back(*runs)) {
      state.queue->finish(*runs);
      cancel(state, {*runs});
      consequence = "what it ran is cancelled";
    }
  }
  if (!state.ending)
    state.config.on_warning(
      fmt::format("worker {} is gone ({}); {}", index, reason.message, consequence));
}

void fail(coordinator_pointer self, uint32_t index, uint64_t closure, error reason) {
  auto& state = self->state;
  // The answer of a cancelled closure is of interest only to the caller that fetches it.
  auto was_cancelled = state.ending || state.queue->has_failed();
  if (was_cancelled && reason.code == errc::cancelled)
    reason = closure_cancelled;
  else
    reason.message = fmt::format("'{}' failed at worker {}: {}",
                                 state.closures.at(closure).function, index, reason.message);
  // A caller that is told of the failure and schedules at once is to be told of it there, too.
  if (!state.ending) state.config.gauge->has_failed = true;
  settle(state, closure, tl::unexpected<error>(reason));
  if (state.ending) return state.queue->finish(closure);
  cancel(state, state.queue->fail(closure, std::move(reason)));
  if (!was_cancelled) cancel_in_flight(self);
}

void on_answer(coordinator_pointer self, uint32_t index, const closure_worker_actor& handle,
               uint64_t number, const expected<msg<wire::ClosureDone>>& outcome) {
  auto& state = self->state;
  auto found = state.workers.find(index);
  auto is_there = found != state.workers.end() && found->second.handle == handle;
  if (!is_there || found->second.runs != number) return; // of a former life
  if (!outcome && outcome.error().code == errc::unavailable) {
    lose(self, index, outcome.error());
    return go_on(self);
  }
  found->second.runs = std::nullopt;
  state.config.gauge->end(index);
  state.idle.push_back(index);
  auto results = outcome.and_then(read_results); // an error: a message could not travel
  if (results) {
    state.queue->finish(number);
    settle(state, number, std::move(*results));
  } else {
    fail(self, index, number, results.error());
  }
  go_on(self);
}

void on_ready(coordinator_pointer self, uint32_t index) {
  auto& state = self->state;
  if (index >= state.config.workers)
    return state.config.on_warning(fmt::format(
      "worker {} is none of {}; start it with the same cluster", index, state.config.workers));
  lose(self, index, {errc::unavailable, "it has begun anew"});
  auto sender = self->current_sender();
  self->monitor(caf::actor_cast<caf::actor_addr>(sender));
  state.workers[index] = {caf::actor_cast<closure_worker_actor>(sender), std::nullopt};
  state.config.gauge->come(index);
  state.idle.push_back(index);
  if (state.losses[index] > 0) state.config.on_warning(fmt::format("worker {} is back", index));
  go_on(self);
}

// An owner that holds variables alone is gone. If its node is not lost, it ends with its strategy.
void strand(coordinator_pointer self, const caf::error& why) {
  auto& state = self->state;
  if (state.ending || state.stranded || !is_lost_node(why)) return;
  auto reason = from_caf(why);
  reason.message += "; variables that no other process holds went with it";
  state.stranded = std::move(reason);
  state.config.gauge->has_failed = true;
  cancel_in_flight(self);
  go_on(self);
}

void on_down(coordinator_pointer self, const caf::down_msg& down) {
  if (self->state.relied_on.contains(down.source)) return strand(self, down.reason);
  for (const auto& [index, worker] : self->state.workers)
    if (worker.handle.address() == down.source) {
      lose(self, index, from_caf(down.reason));
      return go_on(self);
    }
}

void on_schedule(coordinator_pointer self, schedule_closure closure) {
  auto& state = self->state;
  if (closure.admitted)
    state.waiting_for_room.push_back(std::move(closure));
  else
    put(state, std::move(closure));
  go_on(self);
}

void on_end(coordinator_pointer self, const end_service& end) {
  auto& state = self->state;
  state.ending = end;
  turn_away(state, closure_cancelled);
  cancel_in_flight(self);
  go_on(self);
}

caf::result<msg<wire::ServiceEnded>> on_bystander(coordinator_pointer self, uint32_t process) {
  auto& state = self->state;
  auto promise = self->make_response_promise<msg<wire::ServiceEnded>>();
  state.bystanders.insert_or_assign(process, promise);
  if (state.ending) go_on(self);
  return promise;
}

// Warns of lost owners. A call that waits for the present holder of a variable goes on by itself.
void tell_of_owners(const coordinator_state& state, const std::string& loss) {
  if (!state.ending) state.config.on_warning(loss + "; the job goes on");
}

// Ends without the closures that still run.
void on_give_up(coordinator_pointer self) {
  auto& state = self->state;
  while (!state.closures.empty())
    settle(state, state.closures.begin()->first, tl::unexpected<error>(closure_cancelled));
  if (!state.ending) state.ending = end_service{};
  finish(self);
}

} // namespace

coordinator_actor::behavior_type coordinator(coordinator_pointer self, coordinator_config config) {
  auto& state = self->state;
  state.queue.emplace(config.capacity);
  state.config = std::move(config);
  state.config.on_warning
    = line_teller("on_warning of a coordinator", std::move(state.config.on_warning));
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down); });
  return {
    [self](const msg<wire::WorkerReady>& ready) { on_ready(self, ready.reader().getWorker()); },
    [self](const msg<wire::AwaitServiceEnd>& request) {
      return on_bystander(self, request.reader().getProcess());
    },
    [self](const msg<wire::OwnersLost>& lost) {
      tell_of_owners(self->state, read_line(lost.reader().getReason()));
    },
    [self](const msg<wire::OwnersMirrored>& mirrored) {
      if (!self->state.ending)
        self->state.config.on_warning(read_line(mirrored.reader().getReason()));
    },
    [self](const rely_on& message) {
      self->monitor(message.owner);
      self->state.relied_on.insert(message.owner.address());
    },
    [self](schedule_closure& closure) { on_schedule(self, std::move(closure)); },
    [self](const await_closures& caller) {
      self->state.waiting_for_end.push_back(caller);
      go_on(self);
    },
    [self](const end_service& end) { on_end(self, end); },
    [self](give_up) { on_give_up(self); },
  };
}

} // namespace troupe
