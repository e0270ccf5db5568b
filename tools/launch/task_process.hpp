// SPDX-License-Identifier: Apache-2.0
// The process of a task: a program that ends with this one, in a process group of its own.
#pragma once

#include "messages/errors/errc.hpp"

#include <span>
#include <string>
#include <sys/types.h>

namespace troupe {

/// A program that was started. The caller closes the descriptors.
struct task_process {
  pid_t id = 0;    ///< Also the id of its process group, to which its children belong.
  int output = -1; ///< Reads its standard output.
  int errors = -1; ///< Reads its standard error.
};

/// Starts a program without a shell in between, with nothing to read from. It gets a process group
/// of its own, so that a Ctrl-C in the terminal reaches the launcher alone, and SIGKILL
/// when the calling thread ends, for any reason.
/// @param words The program, looked up in PATH, and its arguments.
/// @param environment All of it, as "NAME=value".
/// Errors: `not_found` if there is no such program, `resource` for the system's other reasons.
[[nodiscard]] expected<task_process> start_task(std::span<const std::string> words,
                                                std::span<const std::string> environment);

/// How a task ended: by itself, or by a signal.
struct task_end {
  int exit_code = 0;
  int signal = 0; ///< 0 if it ended by itself.

  [[nodiscard]] bool is_success() const { return exit_code == 0 && signal == 0; }

  /// Whether the task says that its command is wrong: it would fail again.
  [[nodiscard]] bool is_misuse() const;

  /// Whether the task says that it ended because others are missing.
  [[nodiscard]] bool misses_others() const;
};

/// "exit code 5", "signal 9 (SIGKILL)".
[[nodiscard]] std::string to_string(task_end end);

/// "SIGTERM"; "signal 77" if it has no name.
[[nodiscard]] std::string signal_name(int number);

} // namespace troupe
