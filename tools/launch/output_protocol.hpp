// SPDX-License-Identifier: Apache-2.0
// The protocol between launchers: lines of text over TCP, which a person could type.
//
//   sender     troupe-output 1 worker:1 JOB     which task it has started, of which job
//   collector  ok                               or: refused REASON, and the end
//   sender     1 TEXT                           a line that the task wrote to standard output
//              2 TEXT                           or to standard error
//              dropped 17                       so many lines were to stand here, and did not fit
//
// Each line ends with '\n'. The sender says nothing else before the answer, and closes when its
// task is over.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/launch/line_splitter.hpp"
#include "tools/launch/tasks.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The longest line between launchers: the words before a piece of a task's line, and the piece.
/// Units: bytes.
constexpr size_t output_line_bytes_max = line_splitter::line_bytes_max + 3;

/// The longest first line, and the longest answer. Units: bytes.
constexpr size_t output_greeting_bytes_max = 256;

/// The first line of a sender.
struct output_greeting {
  launch_task task;   ///< Without a port.
  std::string job_id; ///< Empty: the sender was given none.

  bool operator==(const output_greeting&) const = default;
};

/// A later line of a sender: a line of the task, or the number of lines that were dropped.
struct output_line {
  int descriptor = 0; ///< 1 or 2; 0 for lines that were dropped.
  std::string text;   ///< Without an end.
  uint64_t dropped = 0;

  bool operator==(const output_line&) const = default;
};

/// A line as it is sent, with its '\n'. @pre `line.text` has no '\n' in it.
[[nodiscard]] std::string written(const output_greeting& greeting);
[[nodiscard]] std::string written(const output_line& line);

/// @param text A line without its end, from anywhere.
/// Errors: invalid_argument.
[[nodiscard]] expected<output_greeting> parse_output_greeting(std::string_view text);
[[nodiscard]] expected<output_line> parse_output_line(std::string_view text);

/// The line about lines that were dropped.
[[nodiscard]] std::string dropped_text(const std::string& task, uint64_t count);

} // namespace troupe
