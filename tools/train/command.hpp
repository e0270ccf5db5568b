// SPDX-License-Identifier: Apache-2.0
// The command `troupe train`.
#pragma once

namespace troupe {

/// Runs the command. Progress and complaints go to standard error, the summary to standard output.
/// @param argument_count, arguments As of main, beginning with "train".
/// @returns The exit code of the process, one of `exit_code` or 128 + the signal that ended it.
[[nodiscard]] int train_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
