// SPDX-License-Identifier: Apache-2.0
// The part of a world that does not depend on its kind.
#include "actors/world/world.hpp"

#include "actors/world/endless_work.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include <utility>

namespace troupe {

world world::threads(world_options options) {
  return world{make_threads_world(options)};
}

world world::virtual_time(world_options options) {
  return world{make_virtual_world(options)};
}

world::world(std::unique_ptr<implementation> implementation)
  : implementation_(std::move(implementation)) {}

world::world(world&&) noexcept = default;

world& world::operator=(world&& other) noexcept {
  end_world(implementation_);
  implementation_ = std::move(other.implementation_);
  return *this;
}

world::~world() {
  end_world(implementation_); // what still runs asks this object for the time
}

caf::actor_system& world::system() {
  return implementation_->system();
}

uint64_t world::seed() const {
  return implementation_->seed;
}

job_time world::now() const {
  return implementation_->now();
}

void world::set_clock(job_time time) {
  if (time > now()) implementation_->set_clock(time);
}

void world::introduce(uint64_t actor, const std::string& name) {
  implementation_->observatory.introduce(actor, name);
  implementation_->introduce(actor, name);
}

const observatory& world::observatory() const {
  return implementation_->observatory;
}

void world::submit(std::function<void()> work) {
  implementation_->submit(std::move(work));
}

bool world::computes_in_place() const {
  return implementation_->computes_in_place();
}

void world::submit_io(std::function<void()> work) {
  implementation_->submit_io(std::move(work));
}

void world::call(std::function<void()> action) {
  implementation_->call(std::move(action));
}

void world::send_last(const caf::actor& receiver, caf::message message) {
  implementation_->send_last(receiver, std::move(message));
}

uint64_t world::event_count() const {
  return implementation_->event_count();
}

expected<void> world::run_until(std::future<void>& done, job_time timeout) {
  return implementation_->run_until(done, timeout);
}

bool world::make_event() {
  return implementation_->make_event();
}

} // namespace troupe
