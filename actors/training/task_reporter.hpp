// SPDX-License-Identifier: Apache-2.0
// The task reporter: tells the first process of a job what the actors of its own process do.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"

namespace troupe {

/// The observatory that a task reporter reads.
struct task_reporter_state {
  static inline const char* name = "task_reporter";
  const observatory* observed = nullptr; ///< Watches this process; outlives the actor.
};

/// The behaviour of a task reporter.
task_reporter_actor::behavior_type
task_reporter(observed_pointer<task_reporter_actor, task_reporter_state> self,
              const observatory* observed);

} // namespace troupe
