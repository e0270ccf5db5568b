// SPDX-License-Identifier: Apache-2.0
// The help texts.
#include "tools/help.hpp"

#include "tools/exit_codes.hpp"
#include "tools/nearest_name.hpp"
#include "tools/option_table.hpp"
#include "tools/option_value.hpp"

#include <array>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr size_t line_width = 80;
constexpr size_t description_column = 26;

constexpr std::string_view train_introduction
  = "Trains a language model on the bytes of a text, by several replicas together.\n"
    "\n"
    "Usage: troupe train [OPTIONS]\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--config). The\n"
    "command line overrides the file, the file overrides the default.\n";

std::string entry(std::string_view name, std::string_view description) {
  auto left = fmt::format("  {:<{}}", name, description_column - 2);
  if (left.size() > description_column) left += fmt::format("\n{:{}}", "", description_column);
  return fmt::format("{}{}\n", left, wrapped(description, description_column, line_width));
}

std::string option_entry(const train_option& option) {
  const auto value = plain_text(option, train_options{});
  const auto standard = value.empty() ? std::string{option.when_empty} : value;
  return entry(fmt::format("--{} {}", option.key, option.argument),
               fmt::format("{} [{}]", option.help, standard));
}

} // namespace

std::string troupe_help() {
  return "Distributed training by actors.\n"
         "\n"
         "Usage: troupe COMMAND [OPTIONS]\n"
         "\n"
         "Commands:\n"
         "  train      train a language model on a text, by several replicas together\n"
         "\n"
         "Options:\n"
         "  --help     this text; troupe COMMAND --help tells more about a command\n"
         "  --version  the version\n"
         "\n"
         + exit_codes_text();
}

std::string unknown_command(std::string_view command) {
  constexpr std::array<std::string_view, 3> known{"train", "--help", "--version"};
  return fmt::format(
    "unknown command '{}'; the nearest known one is '{}' (troupe --help lists all)", command,
    nearest_name(command, known));
}

std::string train_help() {
  std::string text{train_introduction};
  std::string_view group;
  for (const auto& option : train_option_table()) {
    if (option.group != group) text += fmt::format("\n{}:\n", option.group);
    group = option.group;
    text += option_entry(option);
  }
  text += entry("--config FILE", "TOML file with options");
  text += entry("--dump-config", "print all options as such a file, with where each came from");
  text += entry("--help", "this text");
  return text + "\n" + exit_codes_text();
}

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string result;
  size_t column = indent;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

} // namespace troupe
