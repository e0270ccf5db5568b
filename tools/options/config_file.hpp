// SPDX-License-Identifier: Apache-2.0
// Reads options from a TOML file, in which every slip is an error, and writes such files.
#pragma once

#include "tools/options/command_options.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

namespace troupe {

/// A key of a file that is no option of the command.
struct other_key {
  std::string_view key;
  std::function<expected<void>(const toml::node& value)> take; ///< Stores the value.
};

/// Stores the options that a file names, with their lines as origins.
/// @param path For messages. Errors: `invalid_argument` for everything that is not exactly an
/// option with a value of its kind, with a message that begins with file and line; as `other.take`.
[[nodiscard]] expected<void> read_config(std::string_view toml, const std::string& path,
                                         command_options& options, const other_key& other = {});

/// `read_config` for the file at `path`. @param option The option that names the file, for
/// messages. Errors: as `read_config`; `not_found` if it cannot be read.
[[nodiscard]] expected<void> read_config_file(const std::string& path, std::string_view option,
                                              command_options& options,
                                              const other_key& other = {});

/// `read_config_file` for the file of a program with options of its own, which are passed over.
[[nodiscard]] expected<void> read_known_options(const std::string& path, std::string_view option,
                                                command_options& options);

/// The option's value as a file spells it; empty if it has none.
[[nodiscard]] std::string toml_text(const described_option& option);

/// How options are written to a file.
struct config_style {
  std::string_view program; ///< The program that reads them: "troupe train".
  /// Whether an option has no meaning beside the others.
  std::function<bool(std::string_view key)> is_left_out{};
  std::vector<std::string_view> commented{}; ///< Options that are shown, but not read back.
};

/// All options that files may hold, as a TOML file that reads back. A comment beside each value
/// says its origin. Options without a value are comments.
[[nodiscard]] std::string config_text(const command_options& all, const option_origins& origins,
                                      const config_style& style);

/// The program in the first line of a file that `config_text` made; empty for any other file.
[[nodiscard]] std::string program_of_config(const std::filesystem::path& path);

} // namespace troupe
