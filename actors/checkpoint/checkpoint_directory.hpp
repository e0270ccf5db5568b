// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a job: one file for each saved step, of which the newest whole one counts.
#pragma once

#include "actors/checkpoint/safetensors_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A checkpoint that was read whole.
struct checkpoint {
  uint64_t step = 0;
  safetensors_content content;
};

/// The newest checkpoint of a directory, and the files that were passed over.
struct newest_checkpoint {
  std::optional<checkpoint> found;   ///< Nothing if no file is whole.
  std::vector<std::string> warnings; ///< One line for each newer file that had to be passed over.
};

/// Disks lie and machines lose power, so the newest file may be the damaged one. This knows the
/// files of a folder by their steps ("checkpoint-1200.safetensors"), takes the newest that reads
/// whole, and never removes the last one that does.
///
/// Thread: one owner at a time; one process writes.
class checkpoint_directory {
public:
  /// Opens the folder, makes it if it is not there, and removes the files of interrupted writes.
  /// Errors: `resource`; `failed_precondition` if it is no folder.
  [[nodiscard]] static expected<checkpoint_directory> open(std::filesystem::path path);

  /// The folder of another writer: nothing in it is changed, and it need not be there yet. Only
  /// `path_of`, `is_there`, `steps`, `read` and `newest_valid` may be called.
  [[nodiscard]] static checkpoint_directory look_at(std::filesystem::path path);

  /// Where the checkpoint of a step lies, or would.
  [[nodiscard]] std::filesystem::path path_of(uint64_t step) const;

  /// Whether the folder is there. Errors: `resource` if it cannot be looked at, also where a file
  /// lies on the way to it.
  [[nodiscard]] expected<bool> is_there() const;

  /// The steps of all files that are named like checkpoints, ascending. Errors: `resource`.
  [[nodiscard]] expected<std::vector<uint64_t>> steps() const;

  /// Writes the checkpoint of a step; replaces an earlier one of the same step.
  /// Cost, Errors: as `write_safetensors`.
  [[nodiscard]] expected<void> write(uint64_t step, std::span<const named_tensor> tensors,
                                     const safetensors_metadata& metadata);

  /// Reads the checkpoint of a step.
  /// Errors: `not_found` if it is not there, or not any more; `malformed` if it is not whole, or
  /// without a checksum; `invalid_argument` if it is a folder or a device; `resource`.
  [[nodiscard]] expected<checkpoint> read(uint64_t step) const;

  /// Reads from the newest file to the oldest, until one is whole. A file without a checksum is
  /// not ours and counts as damaged. @param end Only checkpoints of steps before it; nothing: of
  /// all. Errors: `resource` if the folder or a file cannot be read, `invalid_argument` if the file
  /// is a folder or a device: it may be whole, so that no older one is taken for it. The line names
  /// the file and the mend.
  [[nodiscard]] expected<newest_checkpoint> newest_valid(std::optional<uint64_t> end = {}) const;

  /// Removes all but the newest `count` files; if none of those is whole, the newest whole one
  /// stays too, and so do newer ones that cannot be read.
  /// Cost: reads no file if this object wrote one of those that stay.
  /// Errors: `resource`; all others are removed all the same. @pre count > 0.
  [[nodiscard]] expected<void> keep(size_t count);

private:
  explicit checkpoint_directory(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] expected<bool> is_whole(uint64_t step) const;

  std::filesystem::path path_;
  std::set<uint64_t> written_; ///< Steps that this object wrote, and the disk confirmed.
};

} // namespace troupe
