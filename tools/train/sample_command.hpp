// SPDX-License-Identifier: Apache-2.0
// The command `troupe sample`, which prints text that the model of a run writes.
#pragma once

namespace troupe {

/// Runs the command. @param argument_count, arguments As of main: the first argument is the
/// command's own name. @returns The exit code of the process.
int sample_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
