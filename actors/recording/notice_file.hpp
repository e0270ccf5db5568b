// SPDX-License-Identifier: Apache-2.0
// notices.csv: what was said to people while a run went on.
#pragma once

#include "actors/recording/output_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A warning on a terminal is gone with the terminal. This keeps every line that a run says beside
/// its progress: replicas that are lost, files that could not be written, why it ended.
///
/// | column | meaning                                |
/// |--------|----------------------------------------|
/// | step   | global step when it was said           |
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
