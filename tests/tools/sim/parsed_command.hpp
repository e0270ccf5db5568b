// SPDX-License-Identifier: Apache-2.0
// Simulations by their command lines.
#pragma once

#include "tests/doctest.hpp"
#include "tools/sim/command_line.hpp"

#include <vector>

namespace troupe::test {

/// The command of `troupe sim` with these arguments, which have to be right.
[[nodiscard]] inline sim_command parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sim");
  auto command = parse_sim_options(static_cast<int>(arguments.size()), arguments.data());
  REQUIRE_MESSAGE(command, (command ? "" : command.error().message));
  return *command;
}

} // namespace troupe::test
