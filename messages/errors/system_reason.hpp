// SPDX-License-Identifier: Apache-2.0
// The reasons of the system in words, with the mend where a limit was reached.
#pragma once

#include <string>

namespace troupe {

/// Why a file could not be used: "Too many open files; ulimit -n sets the limit".
/// @param number As of `errno`.
[[nodiscard]] std::string system_reason(int number);

/// Why a thread or a process could not be started: as `system_reason`, and names the limits on
/// processes where one was reached (EAGAIN). @param number As of `errno`.
[[nodiscard]] std::string start_reason(int number);

} // namespace troupe
