// SPDX-License-Identifier: Apache-2.0
// Files that a run writes while it goes on, with an error when the disk refuses.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Streams of the standard library keep an error to themselves until they are asked, and cannot
/// overwrite the end of a file in one step. This is the thin layer over the system calls that can
/// do both. Thread: one owner at a time.
class output_file {
public:
  /// Creates the file at `path`, or empties the one that is there.
  /// Errors: `resource` with the path and the system's reason.
  [[nodiscard]] static expected<output_file> create(std::filesystem::path path);

  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&& other) noexcept;
  ~output_file();

  /// Creates the file at `path`, where none may lie.
  /// Errors: `failed_precondition` if one does; `resource` with the path and the system's reason.
  [[nodiscard]] static expected<output_file> create_new(std::filesystem::path path);

  /// Writes all of `bytes`, the first at `offset` from the start of the file.
  /// Cost: one system call, unless the kernel takes fewer bytes than offered.
  /// Errors: `resource`; an unknown part of `bytes` may then be in the file.
  [[nodiscard]] expected<void> write_at(uint64_t offset, std::string_view bytes);

  /// Waits until the disk itself holds the written bytes, so that not even a power cut undoes them.
  /// Cost: one wait for the disk.
  /// Errors: `resource`.
  [[nodiscard]] expected<void> sync();

  /// Cuts the file to `size` bytes; used to drop the half of a record that a full disk left behind.
  void truncate(uint64_t size);

  /// Gives the file another path in the same file system, and replaces a file that lies there.
  /// Errors: `resource`.
  [[nodiscard]] expected<void> rename(std::filesystem::path path);

  /// Where the file lies.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  output_file(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Writes a file as a whole: a reader finds the former content, or all of `bytes`. A link stays
/// one: the file behind it is written. A device or a pipe gets the bytes as they are.
/// Errors: `resource`; the former content is still there.
[[nodiscard]] expected<void> replace_file(const std::filesystem::path& path,
                                          std::string_view bytes);

/// Writes a new file as a whole: a reader finds none, or all of `bytes`. If several processes call
/// this for one path, at most one of them succeeds, so the file can be a claim.
/// Errors: `failed_precondition` if something lies at `path`, or is just being written there;
/// `resource`; what lies there stays as it is.
[[nodiscard]] expected<void> create_file(const std::filesystem::path& path, std::string_view bytes);

/// The file that `replace_file` puts another one in place of: `path`, or the file behind that link.
/// Nothing for a device or a pipe.
[[nodiscard]] std::optional<std::filesystem::path>
file_to_replace(const std::filesystem::path& path);

/// Waits until the disk holds the names in a folder: a file that was made or renamed there survives
/// a power cut only after this. Errors: `resource`.
[[nodiscard]] expected<void> sync_folder(const std::filesystem::path& path);

/// Text that is gathered into blocks of whole records, since a system call for each line of a fast
/// job would cost more than the line. The file always ends with a whole record.
class record_writer {
public:
  /// Bytes that may wait in memory before they are written without being asked.
  static constexpr size_t pending_bytes_max = size_t{64} << 10;

  /// Creates the file at `path`, with a first record such as the header of a table.
  /// Errors: `resource`.
  [[nodiscard]] static expected<record_writer> create(std::filesystem::path path,
                                                      std::string_view first_record = {});

  record_writer(record_writer&& other) noexcept;
  record_writer& operator=(record_writer&& other) noexcept;

  /// Writes pending records; a failure is lost here, so call `flush` where it matters.
  ~record_writer();

  /// Adds one record (its line end included).
  /// Errors: `resource` once the disk has refused; then for ever, because the record that failed is
  /// lost.
  [[nodiscard]] expected<void> append(std::string_view record);

  /// Writes pending records. Errors: as `append`.
  [[nodiscard]] expected<void> flush();

  /// As `output_file::rename`; pending records are written later, to the same file.
  [[nodiscard]] expected<void> rename(std::filesystem::path path) {
    return file_.rename(std::move(path));
  }

  /// Where the file lies.
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

private:
  explicit record_writer(output_file file) : file_(std::move(file)) {}

  output_file file_;
  std::string pending_;
  uint64_t written_bytes_ = 0;
  error failure_;
};

} // namespace troupe
