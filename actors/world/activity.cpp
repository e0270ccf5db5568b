// SPDX-License-Identifier: Apache-2.0
// The computing of an activity: work on threads or a device, then the delay that the pace adds.
#include "actors/world/activity.hpp"

#include "actors/world/compute_device.hpp"
#include "actors/world/endless_work.hpp"
#include "messages/errors/assert.hpp"
#include "messages/errors/failure.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace troupe {

namespace {

work_done perform(const world& world, uint64_t ticket,
                  const std::function<void(std::stop_token)>& work, const std::stop_token& stop) {
  work_done done{ticket, {}, {}};
  auto began = world.now();
  enter_user_code();
  try {
    work(stop);
  } catch (...) {
    done.thrown = std::current_exception();
  }
  leave_user_code();
  done.elapsed = world.now() - began;
  return done;
}

work_done failed_work(uint64_t ticket, const caf::error& reason) {
  return {ticket, {}, std::make_exception_ptr(failure{from_caf(reason)})};
}

} // namespace

void activity::begin(work_of_two_kinds work, std::coroutine_handle<> waiter) {
  TROUPE_ASSERT(phase_ == phase::idle);
  phase_ = phase::working;
  if (observation_ != nullptr) observation_->begin_computing(world_.now());
  waiter_ = waiter;
  outcome_ = {};
  if (stop_.stop_requested()) stop_ = std::stop_source{};
  if (is_cancelled()) stop_.request_stop();
  ++computations_;
  if (work.on_device && processor_.device) return begin_on_device(std::move(work.on_device));
  if (work.on_device)
    work.on_threads = [work = std::move(work.on_device)](std::stop_token stop) {
      work(std::move(stop), host_stream());
    };
  if (world_.computes_in_place()) return begin_in_place(work.on_threads);
  auto run = [work = std::move(work.on_threads), stop = stop_.get_token(), world = &world_,
              self = caf::actor_cast<replica_actor>(self_), ticket = computations_] {
    caf::anon_send(self, perform(*world, ticket, work, stop));
  };
  submitting_for actor{self_->id()};
  try {
    world_.submit(std::move(run));
  } catch (...) {
    self_->send(self_, work_done{computations_, {}, std::current_exception()});
  }
}

// The device's actor keeps the deadline. An actor that is gone answers at once, and the reason of
// its end is the error.
template <class Done, class Failed>
void activity::ask_device(const gpu_actor& device, device_work work, Done done, Failed failed) {
  self_
    ->request(device, caf::infinite, std::move(work)) // as above
    .then(std::move(done), [device, failed](const caf::error& reason) {
      if (reason != caf::sec::request_receiver_down) return failed(reason);
      device->attach_functor(
        [failed, bounced = reason](const caf::error& end) { failed(end ? end : bounced); });
    });
}

void activity::begin_on_device(std::function<void(std::stop_token, compute_stream&)> work) {
  device_work request{.stream = processor_.stream, .purpose = purpose_};
  request.launch
    = [work = std::move(work), stop = stop_.get_token()](compute_stream& on) { work(stop, on); };
  auto ticket = computations_;
  ask_device(
    processor_.device, std::move(request),
    [this, ticket](const device_work_done& done) {
      on(work_done{ticket, done.elapsed, done.thrown});
    },
    [self = caf::actor_cast<replica_actor>(self_), ticket](const caf::error& reason) {
      caf::anon_send(self, failed_work(ticket, reason));
    });
}

void activity::begin_offload_to(const processor& where, std::string purpose,
                                std::function<void(compute_stream&)> work) {
  device_work request{
    .stream = where.stream, .purpose = std::move(purpose), .launch = std::move(work)};
  ask_device(
    where.device, std::move(request),
    [this](const device_work_done& done) {
      on(wake{nullptr, done.thrown});
    },
    [self = caf::actor_cast<replica_actor>(self_)](const caf::error& reason) {
      caf::anon_send(self, wake{nullptr, std::make_exception_ptr(failure{from_caf(reason)})});
    });
}

// Work that takes no time needs no message between it and the delay that follows. Without a delay
// one is sent all the same: a coroutine must not go on inside of its own call.
void activity::begin_in_place(const std::function<void(std::stop_token)>& work) {
  auto done = perform(world_, computations_, work, stop_.get_token());
  if (begin_delay(done)) return;
  phase_ = phase::pacing;
  due_ = world_.now();
  self_->send(self_, delay_over{computations_});
}

void activity::on(const work_done& done) {
  TROUPE_ASSERT(phase_ == phase::working);
  TROUPE_ASSERT(done.ticket == computations_, done.ticket, computations_);
  if (!begin_delay(done)) finish();
}

bool activity::begin_delay(const work_done& done) {
  outcome_ = {done.elapsed, done.thrown, false};
  job_time delay{0};
  try {
    if (pace_) delay = pace_(computations_ - 1, done.elapsed);
  } catch (...) { // the trainer's own code; what the work threw comes first
    if (!outcome_.thrown) outcome_.thrown = std::current_exception();
  }
  if (is_cancelled() || outcome_.thrown || delay <= job_time{0}) return false;
  outcome_.elapsed += delay;
  pace_for(delay);
  return true;
}

void activity::pace_for(job_time delay) {
  phase_ = phase::pacing;
  due_ = world_.now() + delay;
  self_->delayed_send(self_, delay, delay_over{computations_});
}

void activity::on(const delay_over& over) {
  if (phase_ == phase::pacing && over.ticket == computations_) finish();
}

void activity::begin_offload(std::function<void()> work) {
  submitting_for actor{self_->id()};
  auto run = [work = std::move(work), self = caf::actor_cast<replica_actor>(self_)] {
    wake done;
    try {
      work();
    } catch (...) {
      done.thrown = std::current_exception();
    }
    caf::anon_send(self, std::move(done));
  };
  try {
    world_.submit(std::move(run));
  } catch (...) {
    self_->send(self_, wake{nullptr, std::current_exception()});
  }
}

void activity::on(wake woken) {
  if (!sleeper_) return; // of a run that was given up
  *woken_ = std::move(woken);
  resume(std::exchange(sleeper_, nullptr));
}

void*& activity::current_surroundings() {
  thread_local void* current = nullptr;
  return current;
}

void activity::cancel_before(uint64_t step) {
  needed_from_ = std::max(needed_from_, step);
  if (!is_cancelled()) return;
  stop_.request_stop();
  if (auto action = std::exchange(when_cancelled_, nullptr)) action();
  if (phase_ == phase::pacing) finish();
}

void activity::when_cancelled(std::function<void()> action) {
  if (action && is_cancelled()) return action();
  when_cancelled_ = std::move(action);
}

void activity::keep(const std::string& name, tensor value) {
  kept_[name] = std::move(value);
}

std::optional<tensor> activity::kept(const std::string& name) const {
  auto found = kept_.find(name);
  return found == kept_.end() ? std::nullopt : std::optional{found->second};
}

replica_progress activity::progress() const {
  replica_progress progress{.computing = phase_ != phase::idle,
                            .local_step = local_step_,
                            .iteration = iteration_,
                            .computations = computations_};
  if (phase_ == phase::pacing) {
    progress.remaining = std::max(job_time{0}, due_ - world_.now());
    progress.compute = outcome_.elapsed;
  }
  for (const auto& [name, value] : kept_)
    progress.kept.push_back({name, value});
  return progress;
}

void activity::restore(const replica_progress& saved) {
  TROUPE_ASSERT(computations_ == 0, computations_);
  local_step_ = saved.local_step;
  iteration_ = saved.iteration;
  computations_ = saved.computations;
  outcome_ = {.elapsed = saved.compute};
  for (const auto& [name, value] : saved.kept)
    kept_[name] = value;
}

void activity::finish() {
  phase_ = phase::idle;
  if (observation_ != nullptr) observation_->end_computing();
  outcome_.cancelled = is_cancelled();
  resume(waiter_);
}

} // namespace troupe
