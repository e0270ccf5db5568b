// SPDX-License-Identifier: Apache-2.0
// A file that is read at any offset, or bytes in memory that stand for one.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// All readers of file formats read from this. A reader must name the file and the position of a
/// wrong byte, must survive a file that shrinks under it (a mapped file would kill the process),
/// and is tested on bytes that are in no file.
///
/// A cheap value: copies share the open file. Thread: any.
class input_file {
public:
  /// Opens a regular file.
  /// Errors: `not_found`; `invalid_argument` if it is a folder or a device; `resource`.
  [[nodiscard]] static expected<input_file> open(const std::filesystem::path& path);

  /// Bytes that are held elsewhere while this or a copy is used, under a name for error messages.
  [[nodiscard]] static input_file in_memory(std::string name, std::span<const std::byte> bytes);

  /// The path, as it begins every error message.
  [[nodiscard]] const std::string& name() const;

  /// Its size in bytes when it was opened.
  [[nodiscard]] uint64_t bytes() const;

  /// Fills `target` with the bytes from `offset` on.
  /// Cost: one system call.
  /// Errors: `malformed` if the file ends before; `resource` if the system refuses.
  [[nodiscard]] expected<void> read_at(uint64_t offset, std::span<std::byte> target) const;

  /// Its bytes from `offset` on, as it was opened. Errors: as `read_at`.
  /// @pre offset <= bytes()
  [[nodiscard]] expected<std::string> text(uint64_t offset = 0) const;

  /// The error of a reader that met something wrong: "NAME: byte OFFSET: PROBLEM".
  [[nodiscard]] tl::unexpected<error> malformed(uint64_t offset, std::string_view problem) const;

private:
  struct state;

  explicit input_file(std::shared_ptr<const state> opened) : state_(std::move(opened)) {}

  std::shared_ptr<const state> state_;
};

/// The error of a system call that has refused to read a file, by errno: `not_found` or `resource`.
[[nodiscard]] tl::unexpected<error> cannot_read(const std::string& name);

/// Bytes of a file as part of an error message: in quotes, on one line, and cut where it would get
/// too long to read.
[[nodiscard]] std::string excerpt(std::string_view text, size_t bytes_max = 60);

} // namespace troupe
