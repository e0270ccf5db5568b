// SPDX-License-Identifier: Apache-2.0
// Prints what a command says before it runs, or instead: help, errors, output that failed.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/system/standard_streams.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Prints why a program ends, to standard error. @param program Begins the line: "troupe train".
/// @returns `code`, for `main`.
int refuse(std::string_view program, const error& reason, exit_code code = exit_code::usage);

/// Prints the text that a command line asks for instead of a run, or the error in it.
/// @returns The exit code of the process; nothing if the command goes on.
template <class Command>
[[nodiscard]] std::optional<int> answered(std::string_view program,
                                          const expected<Command>& command) {
  if (!command) return refuse(program, command.error());
  if (command->answer.empty()) return std::nullopt;
  print_if_possible(stdout, "{}", command->answer);
  return static_cast<int>(exit_code::finished);
}

/// Flushes standard output. @returns `code`; or `exit_code::user_error`, after a line that says so,
/// if `code` is 0 and some output could not be written.
[[nodiscard]] int code_after_output(std::string_view program, int code);

/// The lines about one option: its name, then its description, in a column that all options share.
[[nodiscard]] std::string help_entry(std::string_view name, std::string_view description);

/// A text in lines of at most `width` letters, broken at blanks, all but the first after `indent`
/// blanks. A word longer than a line stands on its own.
[[nodiscard]] std::string wrapped(std::string_view text, size_t indent, size_t width);

} // namespace troupe
