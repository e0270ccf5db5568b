// SPDX-License-Identifier: Apache-2.0
// Lines out of what a pipe delivers, which is cut anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Keeps what belongs to a line that has not ended yet.
class line_splitter {
public:
  /// A longer line comes in pieces, so that a program that never ends one takes no more memory.
  static constexpr size_t line_bytes_max = size_t{64} << 10;

  line_splitter() = default;

  /// @param bytes_max Of a line with its end. @pre bytes_max > 0
  explicit line_splitter(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// @returns The lines that are complete now, each with the '\n' that ends it; without one, a
  /// piece of a line that is too long.
  [[nodiscard]] std::vector<std::string> add(std::string_view bytes);

  /// What is left at the end: a last line that nothing ended; empty if there is none.
  [[nodiscard]] std::string rest();

private:
  size_t bytes_max_ = line_bytes_max;
  std::string begun_;
};

} // namespace troupe
