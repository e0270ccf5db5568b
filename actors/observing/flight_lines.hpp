// SPDX-License-Identifier: Apache-2.0
// The last messages of a process's actors as JSON lines, which programs read.
#pragma once

#include "actors/observing/task_view.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The last messages of a job's processes, collected at one moment.
struct flight_records {
  std::string reason;              ///< One line for people.
  std::vector<task_sight> tasks;   ///< Records that came; a lost process's last report.
  std::vector<std::string> silent; ///< Processes that are lost, or did not answer in time.
};

/// A process's part: first a line about the process, then one for each actor, and one for each of
/// its messages, oldest first. Times are seconds since the job began.
///
///     {"task":"worker:1","reason":"SIGUSR1","seconds":54.0,"lost":false}
///     {"actor":"replica 1","state":"computing","since":12.5,"mailbox":0,"handled":9,"errors":0}
///     {"seconds":12.5,"actor":"replica 1","message":"Token","step":4,"from":"token queue"}
[[nodiscard]] std::string flight_lines(const task_sight& task, const std::string& reason);

/// The part of a process that did not answer: its first line, with `"lost":true` and no time.
[[nodiscard]] std::string silent_flight_line(const std::string& task, const std::string& reason);

/// The name of a process's file: "worker-1.jsonl".
[[nodiscard]] std::string flight_file_name(const std::string& task);

} // namespace troupe
