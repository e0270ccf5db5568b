// SPDX-License-Identifier: Apache-2.0
// What the `troupe` command says about itself, and how every help is laid out.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// `troupe --help`: the commands there are, and the exit codes.
[[nodiscard]] std::string troupe_help();

/// One line for a command that does not exist, naming the nearest one that does.
[[nodiscard]] std::string unknown_command(std::string_view command);

/// The lines about one option: its name, then what it does, from a column on that all options
/// share.
[[nodiscard]] std::string help_entry(std::string_view name, std::string_view description);

/// A text in lines of at most `width` letters, broken at blanks, all but the first after `indent`
/// blanks. A word longer than a line stands on its own.
[[nodiscard]] std::string wrapped(std::string_view text, size_t indent, size_t width);

} // namespace troupe
