// SPDX-License-Identifier: Apache-2.0
// Runs another program, and waits for it until a timeout.
#pragma once

#include "messages/errors/errc.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A program to run, without a shell in between: no argument needs quoting.
struct child_command {
  std::vector<std::string> words;            ///< The program, looked up in PATH, and its arguments.
  std::filesystem::path folder;              ///< Where it runs.
  std::chrono::milliseconds timeout{30'000}; ///< The program is killed after it.
};

/// Runs the program without output, in a process group of its own, which a Ctrl-C for this process
/// does not reach. Errors: `not_found` if there is no such program, `deadline_exceeded` if it was
/// killed, `resource` if it could not be started or did not end with 0.
[[nodiscard]] expected<void> run(const child_command& command);

} // namespace troupe
