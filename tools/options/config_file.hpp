// SPDX-License-Identifier: Apache-2.0
// Options from a TOML file, where a slip of the pen is an error and not a default.
#pragma once

#include "messages/errc.hpp"
#include "tools/options/option_origin.hpp"
#include "tools/options/train_options.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Sets the options that the file at `path` names, and notes where.
/// @param option That names the file, if it cannot be read.
/// Errors: `not_found` if it cannot be read, `invalid_argument` for everything in it that is not
/// exactly an option with a value of its kind; the message begins with file and line.
[[nodiscard]] expected<void> read_config_file(const std::string& path, train_options& options,
                                              option_origins& origins,
                                              std::string_view option = "--config");

/// The same for a text; `path` is only named.
[[nodiscard]] expected<void> read_config(std::string_view toml, const std::string& path,
                                         train_options& options, option_origins& origins);

} // namespace troupe
