// SPDX-License-Identifier: Apache-2.0
// What all commands do with the words behind them.
#pragma once

#include "messages/errc.hpp"

#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
} // namespace CLI

namespace troupe {

/// Takes the words apart into the options of `app`.
/// Errors: invalid_argument ("--steps needs a value").
[[nodiscard]] expected<void> take_apart(CLI::App& app, int argument_count,
                                        const char* const* arguments);

/// What to say of a word that belongs to no option.
/// @param sample How an option is given: "--steps 1000". @param names Of all options.
[[nodiscard]] std::string unexpected_argument(std::string argument, std::string_view sample,
                                              std::span<const std::string_view> names);

} // namespace troupe
