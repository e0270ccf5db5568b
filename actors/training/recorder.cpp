// SPDX-License-Identifier: Apache-2.0
// The recorder passes each record on.
#include "actors/training/recorder.hpp"

#include <utility>

namespace troupe {

recorder_actor::behavior_type recorder(observed_pointer<recorder_actor, recorder_state> self,
                                       recorder_config config) {
  self->state.config = std::move(config);
  return {
    [self](const step_record& record) {
      if (self->state.config.on_step) self->state.config.on_step(record);
    },
    [self](const job_snapshot& snapshot) {
      if (self->state.config.on_snapshot) self->state.config.on_snapshot(snapshot);
    },
    [self](const job_report& report) {
      self->quit();
      self->state.config.on_end(report);
    },
  };
}

} // namespace troupe
