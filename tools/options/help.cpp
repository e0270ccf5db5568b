// SPDX-License-Identifier: Apache-2.0
// The help texts.
#include "tools/options/help.hpp"

#include "tools/options/nearest_name.hpp"

#include <array>
#include <cstdio>

namespace troupe {

namespace {

constexpr size_t line_width = 80;
constexpr size_t description_column = 26;

} // namespace

std::string troupe_help() {
  return "Distributed training by actors.\n"
         "\n"
         "Usage: troupe COMMAND [OPTIONS]\n"
         "\n"
         "Commands:\n"
         "  train      train a language model on a text, by several replicas together\n"
         "  launch     start the tasks of a job on this machine, and end them together\n"
         "  sample     print text that the model of a run writes\n"
         "  report     write a run as one page for a browser\n"
         "  top        show a running job in the terminal\n"
         "  sim        simulate what stragglers and backups cost\n"
         "  cluster    show the cluster that a job started here would be part of\n"
         "\n"
         "Options:\n"
         "  --help     this text; troupe COMMAND --help tells more about a command\n"
         "  --version  the version\n"
         "\n"
         + exit_codes_text();
}

std::string unknown_command(std::string_view command) {
  constexpr std::array<std::string_view, 9> known{"train", "launch",  "sample", "report",   "top",
                                                  "sim",   "cluster", "--help", "--version"};
  return fmt::format(
    "unknown command '{}'; the nearest known one is '{}' (troupe --help lists all)", command,
    nearest_name(command, known));
}

int refuse(std::string_view command, const error& reason, exit_code code) {
  fmt::print(stderr, "troupe {}: {}\n", command, reason.message);
  return static_cast<int>(code);
}

std::string help_entry(std::string_view name, std::string_view description) {
  auto left = fmt::format("  {:<{}}", name, description_column - 2);
  if (left.back() != ' ') left += fmt::format("\n{:{}}", "", description_column);
  return fmt::format("{}{}\n", left, wrapped(description, description_column, line_width));
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
