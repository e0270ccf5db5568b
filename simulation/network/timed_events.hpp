// SPDX-License-Identifier: Apache-2.0
// Things that happen between nodes, at times of the world's clock.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/world/world.hpp"
#include "simulation/network/clock_alarm.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// Events of one moment happen in the order in which they were decided, before actors do
/// anything at that time. Thread: that of the virtual world.
class timed_events {
public:
  /// @param world Outlives this.
  explicit timed_events(world& world);

  /// Does something at a time of the world, or now, if that is over.
  void at(job_time time, std::function<void()> action);

  /// The world's time, also inside an event.
  [[nodiscard]] job_time now() const { return alarm_.now() - origin_; }

private:
  struct event {
    job_time time{0};
    uint64_t number = 0;
    std::function<void()> action;

    bool operator<(const event& other) const { // the earliest is the top of a heap
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void ring();
  void plan_alarm();

  caf::actor_clock::time_point origin_; ///< The clock's time at the world's time 0.
  std::vector<event> events_;           ///< A heap.
  uint64_t event_count_ = 0;
  std::optional<job_time> alarm_set_for_;
  clock_alarm alarm_; ///< Last: nothing rings while the rest is taken apart.
};

} // namespace troupe
