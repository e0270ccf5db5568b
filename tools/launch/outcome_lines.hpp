// SPDX-License-Identifier: Apache-2.0
// The lines that `troupe launch` prints about the ends of tasks.
#pragma once

#include "tools/launch/outcome.hpp"

#include <string>

namespace troupe {

/// The line to print when the job is to end; empty if no task is left to wait for.
/// @pre A task has failed, or the end was asked for.
[[nodiscard]] std::string ending_notice(const launch_outcome& outcome);

/// The line about a task that is started again alone.
[[nodiscard]] std::string restart_notice(const launch_outcome& outcome, size_t task);

/// The line about a worker, parameter server or evaluator that is spared.
[[nodiscard]] std::string spare_notice(const launch_outcome& outcome, size_t task);

/// The line about a task that is given up because it is stopped.
[[nodiscard]] std::string given_up_notice(const launch_outcome& outcome, size_t task);

/// The line that names the tasks to wait for although the job is over; empty if there are none.
[[nodiscard]] std::string waiting_notice(const launch_outcome& outcome);

/// The last line of a job that has failed; empty for one that has finished. It names the task
/// that failed and, if that could not go on without another one, the first that was missing.
[[nodiscard]] std::string summary_of(const launch_outcome& outcome);

} // namespace troupe
