// SPDX-License-Identifier: Apache-2.0
// The virtual world's scheduler and clock: which actor goes first, and when time goes on.
#include "actors/world/virtual_coordinator.hpp"

#include "actors/world/moment_rank.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduled_actor.hpp>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <utility>

namespace troupe {

namespace {

template <class Heap>
auto pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end());
  auto first = std::move(heap.back());
  heap.pop_back();
  return first;
}

template <class Heap, class Element>
void push(Heap& heap, Element element) {
  heap.push_back(std::move(element));
  std::push_heap(heap.begin(), heap.end());
}

// 0 if the job is no actor.
caf::actor_id id_of(caf::resumable* job) {
  if (job->subtype() != caf::resumable::scheduled_actor) return 0;
  return static_cast<caf::scheduled_actor*>(job)->id();
}

// The next actor is known, and lies anywhere among thousands: the processor may bring it near while
// another one works.
void fetch(const void* memory, size_t bytes) {
  constexpr size_t cache_line = 64;
  for (size_t offset = 0; offset < bytes; offset += cache_line)
    __builtin_prefetch(static_cast<const std::byte*>(memory) + offset);
}

constexpr size_t actor_bytes = 3456; // what a replica touches in a step, its coroutines' frames too
constexpr size_t message_bytes = 192;

// The actor that caf::aout writes to.
caf::behavior print(caf::event_based_actor*) {
  return {[](caf::add_atom, caf::actor_id, const std::string& text) { std::cout << text; },
          [](caf::flush_atom, caf::actor_id) { std::cout << std::flush; },
          [](caf::delete_atom, caf::actor_id) {}}; // one that has written has ended
}

} // namespace

// ---- the clock ----

void virtual_clock::schedule_message(time_point due, caf::strong_actor_ptr receiver,
                                     caf::mailbox_element_ptr content) {
  const auto* error = errors_ ? errors_(receiver->id()) : nullptr;
  // However fast its clock runs, what an actor waits for is not over before it has begun.
  if (error != nullptr && due > current_time)
    due = current_time + std::max(job_time{1}, error->time_of(due - current_time));
  if (free_places_.empty()) {
    free_places_.push_back(messages_.size());
    messages_.emplace_back();
  }
  auto place = free_places_.back();
  free_places_.pop_back();
  messages_[place] = {std::move(receiver), std::move(content)};
  push(appointments_, appointment{due, count_++, place});
}

job_time virtual_clock::shown_to(caf::actor_id actor) const {
  const auto* error = errors_ && actor != 0 ? errors_(actor) : nullptr;
  return error == nullptr ? elapsed() : error->shown_at(elapsed());
}

void virtual_clock::cancel_all() {
  appointments_.clear();
  messages_.clear();
  free_places_.clear();
  test_actor_clock::cancel_all();
}

bool virtual_clock::go_on() {
  if (appointments_.empty() && schedule_.empty()) return false;
  current_time = std::max(current_time, next());
  while (!schedule_.empty() && schedule_.begin()->first <= current_time)
    trigger_timeout();
  while (!appointments_.empty() && appointments_.front().due <= current_time)
    send_first();
  return true;
}

virtual_clock::time_point virtual_clock::next() const {
  auto first = time_point::max();
  if (!appointments_.empty()) first = appointments_.front().due;
  if (!schedule_.empty()) first = std::min(first, schedule_.begin()->first);
  return first;
}

// The second and the third of the heap: one of them is next but one.
void virtual_clock::fetch_next() const {
  if (appointments_.empty()) return;
  const auto& next = messages_[appointments_.front().place];
  fetch(next.receiver.get(), actor_bytes);
  fetch(next.content.get(), message_bytes);
  for (size_t i = 1; i < std::min<size_t>(appointments_.size(), 3); ++i)
    fetch(&messages_[appointments_[i].place], sizeof(delayed_message));
}

void virtual_clock::send_first() {
  auto place = pop(appointments_).place;
  fetch_next();
  auto first = std::move(messages_[place]);
  free_places_.push_back(place);
  first.receiver->enqueue(std::move(first.content), nullptr);
}

// ---- the scheduler ----

caf::actor_system::module* virtual_coordinator::make(caf::actor_system& system,
                                                     caf::detail::type_list<> /*no parts*/) {
  return new virtual_coordinator{
    system}; // NOLINT(cppcoreguidelines-owning-memory): CAF's from here
}

void virtual_coordinator::introduce(caf::actor_id actor, const std::string& name) {
  if (actor >= identities_.size()) identities_.resize(actor + 1);
  identities_[actor] = identity_of(name);
}

void virtual_coordinator::start() {
  utility_actors_[printer_id] = system().spawn<caf::hidden + caf::lazy_init>(print);
}

void virtual_coordinator::stop() {
  clock_.cancel_all();
  while (run_one()) {
  }
  utility_actors_[printer_id] = nullptr;
}

bool virtual_coordinator::run_one() {
  auto* actor = first_in_rank();
  if (actor == nullptr) return false;
  ++event_count_;
  running_ = id_of(actor);
  auto has_more = actor->resume(&unit_, 1) == caf::resumable::resume_later;
  running_ = 0;
  if (has_more)
    arrived_.push_back(actor);
  else
    intrusive_ptr_release(actor);
  return true;
}

bool virtual_coordinator::let_time_pass() {
  if (!clock_.go_on()) return false;
  ++event_count_;
  return true;
}

// All actors that are due at one moment are ranked before the first of them goes. A single one, the
// usual case where times are drawn, needs no rank.
caf::resumable* virtual_coordinator::first_in_rank() {
  if (ready_.empty() && arrived_.size() == 1) return pop(arrived_);
  for (auto* actor : arrived_)
    push(ready_, ranked_actor{rank_of(actor), actor});
  arrived_.clear();
  if (ready_.empty()) return nullptr;
  auto* first = pop(ready_).actor;
  if (!ready_.empty()) fetch(ready_.front().actor, actor_bytes);
  return first;
}

uint64_t virtual_coordinator::rank_of(caf::resumable* actor) const {
  auto identity = id_of(actor);
  if (identity == 0) return 0;
  if (identity < identities_.size()) identity = identities_[identity].value_or(identity);
  return moment_rank(seed_, clock_.elapsed(), identity);
}

} // namespace troupe
