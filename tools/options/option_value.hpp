// SPDX-License-Identifier: Apache-2.0
// Options from texts and back: the same rules for the command line and for files.
#pragma once

#include "messages/errc.hpp"
#include "tools/options/option_table.hpp"

#include <span>
#include <string>

namespace troupe {

/// Gives an option its value, in place of the one it had.
/// @param texts One text, or one for each time that the option was given. Only a list keeps more
/// than the last.
/// @param name How the user spelt it, for the message: "--batch", or "run.toml:3: batch".
/// Errors: `invalid_argument` for what is no value of this kind or out of range.
[[nodiscard]] expected<void> assign(const train_option& option, train_options& options,
                                    std::span<const std::string> texts, const std::string& name);

/// What a value of this option has to be, to end a sentence with: "a whole number from 1 to 1,000".
[[nodiscard]] std::string value_description(const train_option& option);

/// The option's value as a file spells it; empty if it has none.
[[nodiscard]] std::string toml_text(const train_option& option, const train_options& options);

/// The option's value as the command line spells it; empty if it has none.
[[nodiscard]] std::string plain_text(const train_option& option, const train_options& options);

} // namespace troupe
