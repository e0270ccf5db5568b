// SPDX-License-Identifier: Apache-2.0
// The places of the records in a file.
#pragma once

#include "actors/recording/input_file.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Lines, rows and records differ in length, so only a search for them tells where number
/// 1000 begins. A table remembers it for all of them, and then reads any of them at once.
/// Cost: 8 bytes of memory for each record.
class record_table {
public:
  /// Longer records are refused when they are read: a file without line ends is a mistake.
  static constexpr uint64_t record_bytes_max = uint64_t{1} << 30;

  /// @param offsets Where each record begins, ascending; then where the last one ends.
  /// @pre At least one offset, none beyond the end of the file.
  record_table(input_file file, std::vector<uint64_t> offsets);

  /// How many records there are.
  [[nodiscard]] uint64_t size() const { return offsets_.size() - 1; }

  /// Where a record begins. @pre index < size().
  [[nodiscard]] uint64_t offset(uint64_t index) const { return offsets_[index]; }

  /// The bytes from the beginning of a record to that of the next. @pre index < size().
  /// Cost: one system call.
  /// Errors: `limit_exceeded`; those of `input_file::read_at`.
  [[nodiscard]] expected<std::string> read(uint64_t index) const;

  [[nodiscard]] const input_file& file() const { return file_; }

private:
  input_file file_;
  std::vector<uint64_t> offsets_;
};

/// Calls `visit` with the blocks of a file, one after the other from `offset` on, and with where
/// each begins. Cost: one pass over the file; 1 MiB of memory.
/// Errors: those of `input_file::read_at`.
[[nodiscard]] expected<void>
for_each_block(const input_file& file, uint64_t offset,
               const std::function<void(uint64_t offset, std::string_view block)>& visit);

} // namespace troupe
