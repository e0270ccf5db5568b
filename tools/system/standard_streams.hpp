// SPDX-License-Identifier: Apache-2.0
// Opens the standard streams of a process, and writes to them even if the disk is full.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

/// Connects each closed standard stream, as by `>&-` of a shell, to the null device. Else the next
/// file that is opened would become the stream, and get its text.
void open_standard_streams();

/// Writes a text and flushes it, so that a process that is killed later has written it. Ignores a
/// text that cannot be written: a job goes on when the disk with its log is full.
void write_if_possible(std::FILE* stream, std::string_view text);

/// Formats a text, as `fmt::print`, and writes it by `write_if_possible`.
template <class... Arguments>
void print_if_possible(std::FILE* stream, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  write_if_possible(stream, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Flushes standard output. @returns The `errno` of the last write to it that failed; 0 if none
/// did.
[[nodiscard]] int finish_standard_output();

} // namespace troupe
