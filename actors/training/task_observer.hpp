// SPDX-License-Identifier: Apache-2.0
// The task observer: looks at the job's other processes from where the chief stands.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/flight_lines.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/world.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace troupe {

/// The view that a task observer fills, and when.
struct task_observer_config {
  std::shared_ptr<task_view> view;                    ///< Gets what is reported.
  job_time period = std::chrono::seconds{1};          ///< Between two looks.
  job_time record_deadline = std::chrono::seconds{5}; ///< For flight records.
  /// Called for each collection, when all have answered or the deadline is over.
  std::function<void(const flight_records&)> on_records;
  troupe::world* world = nullptr; ///< Outlives the actor.
};

/// The processes that are there.
struct task_observer_state {
  static inline const char* name = "task_observer";

  /// A process that has entered the job.
  struct task {
    task_reporter_actor reporter;
    bool is_asked = false; ///< It has not answered the last question yet.
  };

  task_observer_config config;
  std::map<uint32_t, task> tasks;
  flight_records collected;
  size_t awaited = 0; ///< Answers that the collection waits for.
};

/// The behaviour of a task observer. A process that does not answer is asked no more until it does;
/// one that is gone is shown as lost, until it enters again. One collection of flight records is
/// made at a time: a request that comes meanwhile adds none.
task_observer_actor::behavior_type
task_observer(observed_pointer<task_observer_actor, task_observer_state> self,
              task_observer_config config);

} // namespace troupe
