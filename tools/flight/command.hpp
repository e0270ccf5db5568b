// SPDX-License-Identifier: Apache-2.0
// `troupe flight`: the last messages of all tasks of a run, by time.
#pragma once

namespace troupe {

/// Runs the command. @param argument_count, arguments As of main, beginning with "flight".
/// @returns The exit code of the process.
[[nodiscard]] int flight_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
