// SPDX-License-Identifier: Apache-2.0
// A process that belongs to this one: its group, its pipes, and no life beyond ours.
#pragma once

#include "messages/errc.hpp"

#include <span>
#include <string>
#include <sys/types.h>

namespace troupe {

/// A program that was started. The descriptors are for us to read from and to close.
struct task_process {
  pid_t id = 0;    ///< Also of its process group: what it starts belongs to that, too.
  int output = -1; ///< What it writes to standard output.
  int errors = -1; ///< What it writes to standard error.
};

/// Boost.Asio's sockets stay open beyond exec: a task would hold connections of ours open, unless
/// this was called. What the user has opened for a task, the task gets.
void keep_from_tasks(int descriptor);

/// Starts a program without a shell in between, with nothing to read from. It gets a process group
/// of its own, so that a Ctrl-C in the terminal reaches us alone and can be passed on, and SIGKILL
/// when the thread that calls this ends, whatever ends it.
/// @param words The program, looked up in PATH, and its arguments.
/// @param environment All of it, as "NAME=value".
/// Errors: `not_found` if there is no such program, `resource` for the system's other reasons.
[[nodiscard]] expected<task_process> start_task(std::span<const std::string> words,
                                                std::span<const std::string> environment);

} // namespace troupe
