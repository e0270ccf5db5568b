// SPDX-License-Identifier: Apache-2.0
// Options from a TOML file, where a slip of the pen is an error and not a default; and options as
// such a file.
#pragma once

#include "tools/options/command_options.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <toml++/toml.h>

namespace troupe {

/// A key of a file that is no option of the command.
struct other_key {
  std::string_view key;
  std::function<expected<void>(const toml::node& value)> take;
};

/// Stores the options that a file names, and where it does.
/// @param path Only named. Errors: `invalid_argument` for everything that is not exactly an option
/// with a value of its kind, with a message that begins with file and line; as `other`.
[[nodiscard]] expected<void> read_config(std::string_view toml, const std::string& path,
                                         command_options& options, const other_key& other = {});

/// The same for the file at `path`. @param option Names the file; said if it cannot be read.
/// Errors: as `read_config`; `not_found` if it cannot be read.
[[nodiscard]] expected<void> read_config_file(const std::string& path, std::string_view option,
                                              command_options& options,
                                              const other_key& other = {});

/// The same for the file of a program that may have options of its own: these are passed over.
[[nodiscard]] expected<void> read_known_options(const std::string& path, std::string_view option,
                                                command_options& options);

/// The option's value as a file spells it; empty if it has none.
[[nodiscard]] std::string toml_text(const described_option& option);

/// How options are written down.
struct config_style {
  std::string_view program; ///< That reads them: "troupe train".
  /// Whether an option has no meaning beside the others.
  std::function<bool(std::string_view key)> is_left_out{};
  std::string_view commented{}; ///< An option that is shown, but not read back.
};

/// All options that files may hold as a TOML file that reads back, with a note beside each where it
/// came from. Options without a value are comments.
[[nodiscard]] std::string config_text(const command_options& all, const option_origins& origins,
                                      const config_style& style);

/// The program that a file of `config_text` is of; empty for any other file.
[[nodiscard]] std::string program_of_config(const std::filesystem::path& path);

} // namespace troupe
