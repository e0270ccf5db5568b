// SPDX-License-Identifier: Apache-2.0
// What all commands do with the words behind them.
#pragma once

#include "messages/errc.hpp"

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

/// What was given cannot be done, in one line that names the culprit and the mend.
[[nodiscard]] inline tl::unexpected<error> misuse(std::string line) {
  return fail(errc::invalid_argument, std::move(line));
}

/// The number that is the whole of a text.
template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return number;
}

} // namespace troupe
