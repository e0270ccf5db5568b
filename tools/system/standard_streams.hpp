// SPDX-License-Identifier: Apache-2.0
// What a process needs of its standard streams: before it opens anything, and where they are full.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace troupe {

/// Gives each standard stream that is closed, as by `>&-` of a shell, the null device: the next
/// descriptor that is opened would be taken for it, and get what is printed.
void open_standard_streams();

/// Writes, and passes over what cannot be written: a job goes on where the disk with its log is
/// full.
void write_if_possible(std::FILE* stream, std::string_view text);

/// As `fmt::print`, by `write_if_possible`.
template <class... Arguments>
void print_if_possible(std::FILE* stream, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  write_if_possible(stream, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Writes out what was printed. @returns The `errno` of what could not be written to standard
/// output; 0 if all was.
[[nodiscard]] int finish_standard_output();

} // namespace troupe
