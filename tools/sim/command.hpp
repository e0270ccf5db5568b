// SPDX-License-Identifier: Apache-2.0
// The command `troupe sim`.
#pragma once

namespace troupe {

/// Runs `troupe sim`; `arguments[0]` is "sim".
/// @returns The exit code of the process: `stalled` if a run could not make all its steps.
int sim_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
