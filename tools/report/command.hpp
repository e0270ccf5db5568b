// SPDX-License-Identifier: Apache-2.0
// `troupe report`: the page of a run.
#pragma once

namespace troupe {

/// Runs the command; `arguments[0]` is "report". @returns The exit code of the process.
[[nodiscard]] int report_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
