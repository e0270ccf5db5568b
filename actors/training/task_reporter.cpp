// SPDX-License-Identifier: Apache-2.0
// The task reporter's answer.
#include "actors/training/task_reporter.hpp"

#include "actors/observing/task_view.hpp"
#include "messages/observing_message.hpp"

namespace troupe {

task_reporter_actor::behavior_type
task_reporter(observed_pointer<task_reporter_actor, task_reporter_state> self,
              const observatory* observed) {
  self->state.observed = observed;
  return {
    [self](const msg<wire::ReadTask>& request) {
      return make_task_report(report_here(*self->state.observed, request.reader().getMessages()));
    },
  };
}

} // namespace troupe
