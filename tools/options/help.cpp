// SPDX-License-Identifier: Apache-2.0
// Lays out help, and prints errors.
#include "tools/options/help.hpp"

#include <cstdio>
#include <cstring>

namespace troupe {

namespace {

constexpr size_t line_width = 80;
constexpr size_t description_column = 26;

} // namespace

int refuse(std::string_view program, const error& reason, exit_code code) {
  print_if_possible(stderr, "{}: {}\n", program, reason.message);
  return static_cast<int>(code);
}

int code_after_output(std::string_view program, int code) {
  const auto problem = finish_standard_output();
  if (code != 0 || problem == 0) return code;
  return refuse(
    program,
    {errc::resource, fmt::format("cannot write to standard output: {}", std::strerror(problem))},
    exit_code::user_error);
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
