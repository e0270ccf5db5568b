// SPDX-License-Identifier: Apache-2.0
// Comparing texts by lines, and cutting long ones.
#include "actors/training/agreement.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "messages/checks/limits.hpp"

#include <fmt/format.h>
#include <span>

namespace troupe {

namespace {

std::string_view take_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

} // namespace

std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view left, std::string_view right) {
  while (!left.empty() || !right.empty()) {
    auto lines = std::pair{take_line(left), take_line(right)};
    if (lines.first != lines.second) return lines;
  }
  return std::nullopt;
}

std::string short_agreement(std::string text) {
  if (text.size() <= limits::text_bytes_max) return text;
  auto last = fmt::format("checksum of all options and variables = {:08x}\n",
                          cpu::crc32c(std::as_bytes(std::span{text})));
  auto end = text.rfind('\n', limits::text_bytes_max - last.size() - 1);
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text + last;
}

} // namespace troupe
