// SPDX-License-Identifier: Apache-2.0
// `troupe top`: a running job in the terminal.
#pragma once

namespace troupe {

/// Runs the command. @param argument_count, arguments As of main, beginning with "top".
/// @returns The exit code of the process, as its help lists them.
[[nodiscard]] int top_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
