// SPDX-License-Identifier: Apache-2.0
// The command `troupe launch`.
#pragma once

namespace troupe {

/// Starts the tasks of a job on this machine and waits for them. @returns The exit code.
[[nodiscard]] int launch_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
