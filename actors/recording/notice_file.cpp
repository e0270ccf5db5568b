// SPDX-License-Identifier: Apache-2.0
// The lines of notices.csv.
#include "actors/recording/notice_file.hpp"

#include "actors/recording/csv.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe {

expected<notice_file> notice_file::create(std::filesystem::path path) {
  return record_writer::create(std::move(path), header).map([](record_writer lines) {
    return notice_file{std::move(lines)};
  });
}

expected<void> notice_file::append(uint64_t step, std::string_view text) {
  std::string line{text};
  std::ranges::replace_if(
    line, [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  auto done = lines_.append(csv::line({std::to_string(step), csv::field(line)}));
  return done ? lines_.flush() : done;
}

std::optional<notice_line> read_notice_line(std::string_view text) {
  notice_line line;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), line.step);
  if (problem != std::errc{} || end == text.data() + text.size() || *end != ',')
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  if (!text.starts_with('"')) return line.text = text, line;
  if (text.size() < 2 || !text.ends_with('"')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) { // inner quotes are doubled
    line.text += text.front();
    text.remove_prefix(text.starts_with("\"\"") ? 2 : 1);
  }
  return line;
}

} // namespace troupe
