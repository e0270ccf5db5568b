// SPDX-License-Identifier: Apache-2.0
// The standard streams of a process: before it opens anything, and where they are full.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

/// Gives each standard stream that is closed, as by `>&-` of a shell, the null device: the next
/// descriptor that is opened would be taken for it, and get its text.
void open_standard_streams();

/// Writes at once, so that a process that is killed later has said it. A text that cannot be
/// written is passed over: a job goes on where the disk with its log is full.
void write_if_possible(std::FILE* stream, std::string_view text);

/// As `fmt::print`, by `write_if_possible`.
template <class... Arguments>
void print_if_possible(std::FILE* stream, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  write_if_possible(stream, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Flushes standard output. @returns The `errno` of the last write to it that failed; 0 if none
/// did.
[[nodiscard]] int finish_standard_output();

} // namespace troupe
