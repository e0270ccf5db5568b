// SPDX-License-Identifier: Apache-2.0
// Finds the lines in the bytes of a pipe, which arrive in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Splits bytes into lines, and keeps the bytes of a line that has not ended yet.
class line_splitter {
public:
  /// A longer line comes in pieces, so that a program that never ends one takes no more memory.
  static constexpr size_t line_bytes_max = size_t{64} << 10;

  line_splitter() = default;

  /// @param bytes_max Bytes of a line with its end. @pre bytes_max > 0
  explicit line_splitter(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// @returns The lines that are complete now, each with the '\n' that ends it; without one, a
  /// piece of a line that is too long.
  [[nodiscard]] std::vector<std::string> add(std::string_view bytes);

  /// Takes out a last line without an end; empty: there is none.
  [[nodiscard]] std::string rest();

private:
  size_t bytes_max_ = line_bytes_max;
  std::string begun_;
};

} // namespace troupe
