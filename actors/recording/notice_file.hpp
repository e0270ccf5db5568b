// SPDX-License-Identifier: Apache-2.0
// notices.csv: the messages of a run to people.
#pragma once

#include "actors/recording/output_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A warning on a terminal is gone with the terminal. This file keeps every line of a run beside
/// its progress: replicas that are lost, files that could not be written, why it ended.
///
/// | column | meaning                                |
/// |--------|----------------------------------------|
/// | step   | global step at that time               |
/// | text   | one line, control characters as blanks |
class notice_file {
public:
  /// The first line of the file.
  static constexpr std::string_view header = "step,text\n";

  /// Creates the file with its header. Errors: `resource`.
  [[nodiscard]] static expected<notice_file> create(std::filesystem::path path);

  /// Adds a notice, and brings it to the file at once. Errors: `resource`, for ever after the
  /// first.
  [[nodiscard]] expected<void> append(uint64_t step, std::string_view text);

private:
  explicit notice_file(record_writer lines) : lines_(std::move(lines)) {}

  record_writer lines_;
};

/// A line of the file, read back.
struct notice_line {
  uint64_t step = 0;
  std::string text;
};

/// @param text Without the line end. @returns Nothing if it is no such line.
[[nodiscard]] std::optional<notice_line> read_notice_line(std::string_view text);

} // namespace troupe
