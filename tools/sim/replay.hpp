// SPDX-License-Identifier: Apache-2.0
// `troupe sim replay RUN_DIR`: estimates how long a run would have taken with one thing changed.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/replay/changed_run.hpp"

#include <string>

namespace troupe {

/// The command line of `troupe sim replay`.
struct replay_command : replay_change {
  std::string run_dir;
  std::string json;   ///< File for the report, "-" for standard output; empty: none.
  std::string answer; ///< To be printed instead, if not empty.
};

/// Reads the command line. @param arguments `arguments[0]` is "replay".
/// Errors: invalid_argument, in a line that names the culprit.
[[nodiscard]] expected<replay_command> parse_replay_options(int argument_count,
                                                            const char* const* arguments);

/// The report in words, and as one JSON object.
[[nodiscard]] std::string replay_text(const replay_command& command, const run_folder& folder,
                                      const replay_report& report);
[[nodiscard]] std::string replay_json(const replay_command& command, const replay_report& report);

/// Runs the command; `arguments[0]` is "replay". @returns The exit code of the process.
int replay_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
