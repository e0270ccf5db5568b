// SPDX-License-Identifier: Apache-2.0
// Texts, compared by lines.
#include "actors/training/agreement.hpp"

namespace troupe {

namespace {

std::string_view take_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

} // namespace

std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view one, std::string_view other) {
  while (!one.empty() || !other.empty()) {
    auto line = take_line(one);
    auto another = take_line(other);
    if (line != another) return std::pair{line, another};
  }
  return std::nullopt;
}

} // namespace troupe
