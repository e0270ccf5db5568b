// SPDX-License-Identifier: Apache-2.0
// Runs another program and waits for it, but not for ever.
#pragma once

#include "messages/errc.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A program to run, without a shell in between: no argument needs quoting.
struct child_command {
  std::vector<std::string> words;            ///< The program, looked up in PATH, and its arguments.
  std::filesystem::path folder;              ///< Where it runs.
  std::chrono::milliseconds timeout{30'000}; ///< After this it is killed.
};

/// Runs the program with its output thrown away, in a process group of its own, so that a Ctrl-C
/// meant for us does not reach it. Errors: `not_found` if there is no such program,
/// `deadline_exceeded` if it had to be killed, `resource` if it could not be started or ended with
/// anything but 0.
[[nodiscard]] expected<void> run(const child_command& command);

} // namespace troupe
