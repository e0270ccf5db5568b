// SPDX-License-Identifier: Apache-2.0
// The commands that `troupe` has.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `troupe --help`: the commands there are, and the exit codes.
[[nodiscard]] std::string troupe_help();

/// One line for a command that does not exist, naming the nearest one that does.
[[nodiscard]] std::string unknown_command(std::string_view command);

} // namespace troupe
