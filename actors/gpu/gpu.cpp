// SPDX-License-Identifier: Apache-2.0
// The gpu: it launches the work that actors ask for, and answers when the device has done it.
#include "actors/gpu/gpu.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using gpu_pointer = observed_pointer<gpu_actor, gpu_state>;

// How often the device is looked at within a deadline: a lost one does not say so by itself.
constexpr int work_looks = 8;

// An asker that was answered when its work was queued gets no second answer.
template <class Answer>
void answer(gpu_state::open_work& work, Answer answer) {
  if (work.answer.pending()) work.answer.deliver(std::move(answer));
}

// All open work, and all that comes later, is answered by the reason: the device is of no use.
void give_up_device(gpu_state& state, const error& reason) {
  state.lost = to_caf(reason);
  for (auto& [ticket, work] : std::exchange(state.open, {}))
    answer(work, *state.lost);
}

// Whether the device is of no use any more.
bool is_lost(gpu_state& state) {
  if (state.lost) return true;
  auto& device = *state.config.device;
  auto lost = device.loss();
  if (!lost) return false;
  give_up_device(state,
                 {errc::unavailable, fmt::format("{} is lost: {}", device.name(), lost->message)});
  return true;
}

using waiting_works = std::vector<std::pair<uint64_t, std::shared_ptr<const device_work>>>;

// How many pieces of work have one end at most: those that ask for them hear of the first ones
// while the next are launched.
constexpr size_t works_with_one_end_max = 16;

launched_work launch(compute_device& device, const world& world, uint64_t ticket,
                     const device_work& work) {
  launched_work launched{ticket, world.now(), {}};
  try {
    work.launch(device.stream(work.stream));
  } catch (...) {
    launched.thrown = std::current_exception();
  }
  return launched;
}

// If the device refuses, the last piece of work has failed: the device was well before it.
void ask_for_end(compute_device& device, const gpu_actor& owner, uint32_t stream,
                 std::vector<uint64_t> tickets) {
  auto notified
    = device.notify(stream, [owner, tickets] { caf::anon_send(owner, work_completed{tickets}); });
  if (notified) return;
  auto refused = tickets.back();
  tickets.pop_back();
  caf::anon_send(owner, work_completed{{refused}, notified.error()});
  if (!tickets.empty()) ask_for_end(device, owner, stream, std::move(tickets));
}

// Runs on a computing thread. The actor stays until it has heard of the end of this, and with it
// the world. To ask the device for an end costs as much as a small update: pieces of work that are
// answered when they are queued have one for several.
void launch_all(compute_device& device, const world& world, const gpu_actor& owner,
                const waiting_works& works) {
  std::vector<launched_work> launched;
  std::vector<uint64_t> tickets;
  auto is_queued
    = [&](size_t i) { return i < works.size() && works[i].second->is_answered_when_queued; };
  for (size_t i = 0; i < works.size(); ++i) {
    const auto& [ticket, work] = works[i];
    launched.push_back(launch(device, world, ticket, *work));
    tickets.push_back(ticket);
    auto shares_end = is_queued(i) && is_queued(i + 1) && tickets.size() < works_with_one_end_max;
    if (shares_end && device.is_well(work->stream)) continue;
    if (is_queued(i)) device.publish(work->stream);
    ask_for_end(device, owner, work->stream, std::exchange(tickets, {}));
    caf::anon_send(owner, work_launched{work->stream, std::exchange(launched, {})});
  }
}

void launch_waiting(gpu_pointer self, uint32_t stream) {
  auto& state = self->state;
  waiting_works works;
  for (auto ticket : state.ledger.begin_waiting(stream))
    works.emplace_back(ticket, state.open.at(ticket).work);
  if (works.empty()) return;
  auto count = works.size();
  auto run = [device = state.config.device, world = state.config.world,
              owner = caf::actor_cast<gpu_actor>(self),
              works = std::move(works)] { launch_all(*device, *world, owner, works); };
  try {
    state.config.world->submit(std::move(run));
    state.launching += count;
  } catch (...) {
    auto reason = reason_of(std::current_exception());
    give_up_device(state, {reason.code, fmt::format("{} is given up: {}",
                                                    state.config.device->name(), reason.message)});
  }
}

void plan_watch(gpu_pointer self) {
  auto& state = self->state;
  auto due = state.ledger.next_due();
  if (state.is_watching || !due) return;
  auto left = *due - state.config.world->now();
  auto pause
    = std::clamp<job_time>(left, std::chrono::milliseconds{1}, state.config.deadline / work_looks);
  state.is_watching = true;
  self->delayed_send(self, pause, watch_tick{});
}

// The actor ends with its device, and with the reason of its loss: an asker that comes too late to
// be answered finds the reason there.
void leave_if_done(gpu_pointer self) {
  const auto& state = self->state;
  if ((state.is_leaving || state.lost) && state.open.empty() && state.launching == 0)
    self->quit(state.lost.value_or(caf::error{}));
}

void watch(gpu_pointer self) {
  auto& state = self->state;
  state.is_watching = false;
  if (is_lost(state)) return leave_if_done(self);
  if (auto late = state.ledger.overdue(state.config.world->now())) {
    give_up_device(
      state, {errc::deadline_exceeded,
              fmt::format("{} has not done {} in {:.1f} s, and nothing can stop it",
                          state.config.device->name(), late->purpose, seconds(late->timeout))});
    return leave_if_done(self);
  }
  plan_watch(self);
}

caf::result<device_work_done> on_work(gpu_pointer self, const device_work& work) {
  auto& state = self->state;
  auto& device = *state.config.device;
  if (work.stream >= device.stream_count())
    return to_caf(
      {errc::invalid_argument, fmt::format("{}: {} has {} streams, and no stream {}", work.purpose,
                                           device.name(), device.stream_count(), work.stream)});
  if (is_lost(state)) {
    leave_if_done(self);
    return *state.lost;
  }
  auto answer = self->make_response_promise<device_work_done>();
  auto timeout = work.timeout > job_time{0} ? work.timeout : state.config.deadline;
  auto now = state.config.world->now();
  auto ticket = state.ledger.add(work.stream, work.purpose, timeout, now);
  state.open.emplace(ticket, gpu_state::open_work{std::make_shared<device_work>(work), answer});
  launch_waiting(self, work.stream);
  plan_watch(self);
  return answer;
}

void complete(gpu_state& state, uint64_t ticket, const error& refused) {
  auto now = state.config.world->now();
  state.ledger.complete(ticket, now);
  auto work = std::move(state.open.extract(ticket).mapped());
  if (refused.code != errc::none)
    answer(work, to_caf(refused));
  else
    answer(work, device_work_done{now - work.began, work.thrown});
}

void answer_launched(gpu_state& state, const launched_work& launched) {
  auto& work = state.open.at(launched.ticket);
  work.began = launched.began;
  work.thrown = launched.thrown;
  work.is_launched = true;
  if (auto completed = work.completed)
    complete(state, launched.ticket, *completed);
  else if (work.work->is_answered_when_queued)
    answer(work, device_work_done{state.config.world->now() - work.began, work.thrown});
}

void on_launched(gpu_pointer self, const work_launched& launched) {
  auto& state = self->state;
  state.launching -= launched.works.size();
  for (const auto& work : launched.works)
    state.ledger.launched(work.ticket);
  if (!is_lost(state)) launch_waiting(self, launched.stream);
  if (state.lost) return leave_if_done(self);
  for (const auto& work : launched.works)
    answer_launched(state, work);
  leave_if_done(self);
}

// The device may be faster than the thread that tells it what to do.
void on_completed(gpu_pointer self, const work_completed& completed) {
  auto& state = self->state;
  if (is_lost(state)) return leave_if_done(self);
  for (auto ticket : completed.tickets) {
    auto& work = state.open.at(ticket);
    work.completed = completed.refused;
    if (work.is_launched) complete(state, ticket, completed.refused);
  }
  leave_if_done(self);
}

// Stays until launched work has ended: the work, and the device's word of it, refer to the world.
void on_exit(gpu_pointer self, const caf::exit_msg& exit) {
  if (exit.reason != caf::exit_reason::user_shutdown) return self->quit(exit.reason);
  self->state.is_leaving = true;
  leave_if_done(self);
}

} // namespace

gpu_actor::behavior_type gpu(gpu_pointer self, gpu_config config) {
  self->state.config = std::move(config);
  self->set_exit_handler([self](const caf::exit_msg& exit) { on_exit(self, exit); });
  return {
    [self](const device_work& work) { return on_work(self, work); },
    [self](const work_launched& launched) { on_launched(self, launched); },
    [self](const work_completed& completed) { on_completed(self, completed); },
    [self](watch_tick) { watch(self); },
  };
}

} // namespace troupe
