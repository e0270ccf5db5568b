// SPDX-License-Identifier: Apache-2.0
// The recorder: writes down what happened, away from the actors that make it happen.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"

#include <functional>

namespace troupe {

/// The functions that get the records, and make files, a progress line or a summary of them. They
/// are called in the order of events, one at a time, on some thread of the world.
struct recorder_config {
  std::function<void(const step_record&)> on_step;      ///< May be empty.
  std::function<void(const job_snapshot&)> on_snapshot; ///< May be empty.
  std::function<void(const job_report&)> on_end;        ///< Called once, after the last step.
};

/// The state of a recorder: the functions that get the records.
struct recorder_state {
  static inline const char* name = "recorder";
  recorder_config config;
};

/// The behaviour of the recorder; it ends after the job's end.
recorder_actor::behavior_type recorder(observed_pointer<recorder_actor, recorder_state> self,
                                       recorder_config config);

} // namespace troupe
