// SPDX-License-Identifier: Apache-2.0
// Comparing texts by lines, refusing processes by them, and cutting long ones.
#include "actors/training/agreement.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "messages/checks/limits.hpp"
#include "messages/message_builder.hpp"

#include <fmt/format.h>
#include <span>

namespace troupe {

namespace {

std::string_view take_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

constexpr std::string_view checksum_begin = "checksum of all options and variables = ";

// The option that a line is of; empty, if it is of a variable, of the data, or a checksum.
std::string_view option_of_line(std::string_view line) {
  auto end = line.find(" = ");
  if (end == std::string_view::npos || line.starts_with("variable ")) return {};
  return line.starts_with(checksum_begin) ? std::string_view{} : line.substr(0, end);
}

} // namespace

std::string_view line_or_nothing(std::string_view line) {
  return line.empty() ? "nothing there" : line;
}

std::string mend_of(std::string_view left, std::string_view right, std::string_view both) {
  auto is_cut = left.starts_with(checksum_begin) || right.starts_with(checksum_begin);
  if (!is_cut && option_of_line(left) != option_of_line(right)) return "from the same build";
  return fmt::format("with the same {}", both);
}

std::optional<std::pair<std::string_view, std::string_view>>
first_difference(std::string_view left, std::string_view right) {
  while (!left.empty() || !right.empty()) {
    auto lines = std::pair{take_line(left), take_line(right)};
    if (lines.first != lines.second) return lines;
  }
  return std::nullopt;
}

std::optional<error> check_agreement(std::string_view name, std::string_view theirs,
                                     std::string_view ours) {
  auto lines = first_difference(theirs, cut_text(ours));
  if (!lines) return std::nullopt;
  return differing_setting(name, lines->first, lines->second);
}

error differing_setting(std::string_view name, std::string_view theirs, std::string_view ours) {
  return {errc::failed_precondition,
          fmt::format("{} has {}, the chief's process {}; start all processes of a job {}", name,
                      line_or_nothing(theirs), line_or_nothing(ours),
                      mend_of(theirs, ours, "options and variables"))};
}

error unknown_member() {
  return {errc::invalid_argument,
          "this job has no such member; give all processes the same cluster"};
}

std::string short_agreement(std::string text) {
  if (text.size() <= limits::text_bytes_max) return text;
  auto last
    = fmt::format("{}{:08x}\n", checksum_begin, cpu::crc32c(std::as_bytes(std::span{text})));
  auto end = text.rfind('\n', limits::text_bytes_max - last.size() - 1);
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text + last;
}

} // namespace troupe
