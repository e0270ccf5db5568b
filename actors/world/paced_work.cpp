// SPDX-License-Identifier: Apache-2.0
// Work, then its delay: the phases of a computation.
#include "actors/world/paced_work.hpp"

#include "actors/world/compute_device.hpp"
#include "actors/world/endless_work.hpp"
#include "actors/world/request_work.hpp"
#include "messages/errors/assert.hpp"

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

} // namespace

void paced_work::begin(work_of_two_kinds work, bool cancelled) {
  TROUPE_ASSERT(phase_ == phase::idle);
  phase_ = phase::working;
  if (observation_ != nullptr) observation_->begin_computing(world_.now());
  outcome_ = {};
  renew_stop(cancelled);
  ++computations_;
  if (work.on_device && processor_.device) return begin_on_device(std::move(work.on_device));
  if (work.on_device)
    work.on_threads = [work = std::move(work.on_device)](std::stop_token stop) {
      work(std::move(stop), host_stream());
    };
  if (world_.computes_in_place()) return begin_in_place(work.on_threads);
  begin_on_threads(std::move(work.on_threads));
}

void paced_work::renew_stop(bool cancelled) {
  if (stop_.stop_requested()) stop_ = std::stop_source{};
  if (cancelled) stop_.request_stop();
}

void paced_work::begin_on_threads(std::function<void(std::stop_token)> work) {
  auto run = [work = std::move(work), stop = stop_.get_token(), world = &world_,
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

void paced_work::begin_on_device(std::function<void(std::stop_token, compute_stream&)> work) {
  device_work request{.stream = processor_.stream, .purpose = purpose_};
  request.launch
    = [work = std::move(work), stop = stop_.get_token()](compute_stream& on) { work(stop, on); };
  auto ticket = computations_;
  request_work(
    self_, processor_.device, std::move(request),
    [this, ticket](const device_work_done& done) {
      on(work_done{ticket, done.elapsed, done.thrown});
    },
    [self = caf::actor_cast<replica_actor>(self_), ticket](std::exception_ptr thrown) {
      caf::anon_send(self, work_done{ticket, {}, std::move(thrown)});
    });
}

// Work that takes no time needs no message between it and the delay that follows. Without a delay
// one is sent all the same: a coroutine must not go on inside of its own call.
void paced_work::begin_in_place(const std::function<void(std::stop_token)>& work) {
  auto done = perform(world_, computations_, work, stop_.get_token());
  if (begin_delay(done)) return;
  phase_ = phase::pacing;
  due_ = world_.now();
  self_->send(self_, delay_over{computations_});
}

void paced_work::on(const work_done& done) {
  TROUPE_ASSERT(phase_ == phase::working);
  TROUPE_ASSERT(done.ticket == computations_, done.ticket, computations_);
  if (!begin_delay(done)) finish();
}

bool paced_work::begin_delay(const work_done& done) {
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

void paced_work::pace_for(job_time delay) {
  phase_ = phase::pacing;
  due_ = world_.now() + delay;
  self_->delayed_send(self_, delay, delay_over{computations_});
}

void paced_work::begin_rest(job_time remaining, bool cancelled) {
  TROUPE_ASSERT(phase_ == phase::idle);
  renew_stop(cancelled);
  pace_for(remaining);
}

void paced_work::on(const delay_over& over) {
  if (phase_ == phase::pacing && over.ticket == computations_) finish();
}

void paced_work::cancel() {
  stop_.request_stop();
  if (phase_ == phase::pacing) finish();
}

void paced_work::finish() {
  phase_ = phase::idle;
  if (observation_ != nullptr) observation_->end_computing();
  outcome_.cancelled = is_cancelled();
  finished_();
}

void paced_work::write_progress(replica_progress& to) const {
  to.computing = phase_ != phase::idle;
  to.computations = computations_;
  if (phase_ != phase::pacing) return;
  to.remaining = std::max(job_time{0}, due_ - world_.now());
  to.compute = outcome_.elapsed;
}

void paced_work::restore(const replica_progress& saved) {
  TROUPE_ASSERT(computations_ == 0, computations_);
  computations_ = saved.computations;
  outcome_ = {.elapsed = saved.compute};
}

} // namespace troupe
