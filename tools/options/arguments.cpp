// SPDX-License-Identifier: Apache-2.0
// Refusing words that CLI11 cannot take apart, in our words.
#include "tools/options/arguments.hpp"

#include "tools/options/nearest_name.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

namespace troupe {

expected<void> take_apart(CLI::App& app, int argument_count, const char* const* arguments) {
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ArgumentMismatch& problem) {
    const std::string what = problem.what();
    return fail(errc::invalid_argument, what.substr(0, what.find(':')) + " needs a value");
  } catch (const CLI::ParseError& problem) {
    return fail(errc::invalid_argument, problem.what());
  }
  for (const auto* option : app.get_options()) // a variable of the shell may not be set
    if (option->count() > 0 && option->get_items_expected_max() > 0
        && option->results().back().empty())
      return fail(errc::invalid_argument, option->get_name() + " needs a value");
  return {};
}

std::string unexpected_argument(std::string argument, std::string_view sample,
                                std::span<const std::string_view> names) {
  if (argument.empty() || argument[0] != '-')
    return fmt::format("unexpected argument '{}': values follow their option, as in {}", argument,
                       sample);
  argument = argument.substr(0, argument.find('='));
  auto letters = std::string_view{argument};
  letters.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return fmt::format("unknown option '{}'; the nearest known one is '--{}'", argument,
                     nearest_name(letters, names));
}

} // namespace troupe
