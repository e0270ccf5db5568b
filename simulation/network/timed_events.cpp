// SPDX-License-Identifier: Apache-2.0
// A heap of events, and an alarm set for the first of them.
#include "simulation/network/timed_events.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

timed_events::timed_events(world& world)
  : origin_(world.system().clock().now() - world.now()),
    alarm_(world.system(), [this] { ring(); }) {}

void timed_events::at(job_time time, std::function<void()> action) {
  events_.push_back({std::max(time, now()), event_count_++, std::move(action)});
  std::push_heap(events_.begin(), events_.end());
  plan_alarm();
}

void timed_events::plan_alarm() {
  if (events_.empty() || (alarm_set_for_ && *alarm_set_for_ <= events_.front().time)) return;
  alarm_set_for_ = events_.front().time;
  alarm_.set(origin_ + *alarm_set_for_);
}

void timed_events::ring() {
  auto time = now();
  while (!events_.empty() && events_.front().time <= time) {
    std::pop_heap(events_.begin(), events_.end());
    auto action = std::move(events_.back().action);
    events_.pop_back();
    action();
  }
  if (alarm_set_for_ && *alarm_set_for_ <= time) alarm_set_for_.reset();
  plan_alarm();
}

} // namespace troupe
