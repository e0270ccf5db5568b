// SPDX-License-Identifier: Apache-2.0
// The system calls behind the files of a run.
#include "actors/recording/output_file.hpp"

#include "messages/errors/system_reason.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

tl::unexpected<error> system_failure(std::string_view action, const std::filesystem::path& path) {
  const int code = errno;
  return fail(errc::resource,
              fmt::format("cannot {} {}: {}", action, path.native(), system_reason(code)));
}

tl::unexpected<error> already_there(const std::filesystem::path& path) {
  return fail(errc::failed_precondition,
              fmt::format("cannot create {}: {}", path.native(), system_reason(EEXIST)));
}

// The path that a link leads to, whether a file lies there or not.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int links_max = 40; // as many as Linux follows
  std::error_code ignored;
  for (int i = 0; i < links_max && std::filesystem::is_symlink(path, ignored); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  return path;
}

// Writes a file beside `path`, and moves it there once it is whole.
expected<void> write_beside(output_file beside, std::string_view bytes,
                            const std::filesystem::path& path) {
  const auto unfinished = beside.path();
  auto done = beside.write_at(0, bytes);
  if (done) done = beside.rename(path);
  if (std::error_code ignored; !done) std::filesystem::remove(unfinished, ignored);
  return done;
}

} // namespace

expected<output_file> output_file::create(std::filesystem::path path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return system_failure("create", path);
  return output_file{std::move(path), descriptor};
}

expected<output_file> output_file::create_new(std::filesystem::path path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) return already_there(path);
  if (descriptor < 0) return system_failure("create", path);
  return output_file{std::move(path), descriptor};
}

output_file::output_file(std::filesystem::path path, int descriptor)
  : path_(std::move(path)), descriptor_(descriptor) {}

output_file::output_file(output_file&& other) noexcept
  : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

output_file& output_file::operator=(output_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

output_file::~output_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

expected<void> output_file::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t taken
      = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return system_failure("write", path_);
    offset += static_cast<uint64_t>(taken);
    bytes.remove_prefix(static_cast<size_t>(taken));
  }
  return {};
}

expected<void> output_file::sync() {
  if (::fsync(descriptor_) != 0) return system_failure("write", path_);
  return {};
}

void output_file::truncate(uint64_t size) {
  // A device such as /dev/full cannot be cut, and holds nothing that should be.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size));
}

expected<void> output_file::rename(std::filesystem::path path) {
  if (::rename(path_.c_str(), path.c_str()) != 0) return system_failure("create", path);
  path_ = std::move(path);
  return {};
}

expected<void> replace_file(const std::filesystem::path& path, std::string_view bytes) {
  auto target = file_to_replace(path);
  if (!target) {
    std::ofstream device{path};
    device << bytes << std::flush;
    return device ? expected<void>{} : system_failure("write", path);
  }
  auto unfinished = *target;
  unfinished += ".new";
  auto file = output_file::create(unfinished);
  if (!file) return tl::unexpected(file.error());
  return write_beside(std::move(*file), bytes, *target);
}

// The unfinished file is a lock: no other process moves a file to `path` while it is there. A hard
// link to `path` would need no lock, but some file systems have none.
expected<void> create_file(const std::filesystem::path& path, std::string_view bytes) {
  auto unfinished = path;
  unfinished += ".new";
  auto file = output_file::create_new(unfinished);
  if (!file) return tl::unexpected(file.error());
  std::error_code ignored;
  const auto is_free = std::filesystem::symlink_status(path, ignored).type()
                       == std::filesystem::file_type::not_found;
  if (is_free) return write_beside(std::move(*file), bytes, path);
  std::filesystem::remove(unfinished, ignored);
  return already_there(path);
}

// A device has no content to keep, and cannot be replaced.
std::optional<std::filesystem::path> file_to_replace(const std::filesystem::path& path) {
  using std::filesystem::file_type;
  std::error_code ignored;
  auto kind = std::filesystem::status(path, ignored).type();
  if (kind != file_type::not_found && kind != file_type::regular) return std::nullopt;
  return behind_links(path);
}

expected<void> sync_folder(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return system_failure("open", path);
  // Some file systems know no such wait for a folder: they say EINVAL, and there is nothing to do.
  const bool done = ::fsync(descriptor) == 0 || errno == EINVAL;
  expected<void> result;
  if (!done) result = system_failure("write", path);
  ::close(descriptor);
  return result;
}

expected<record_writer> record_writer::create(std::filesystem::path path,
                                              std::string_view first_record) {
  auto file = output_file::create(std::move(path));
  if (!file) return tl::unexpected(file.error());
  record_writer writer{std::move(*file)};
  auto done = writer.append(first_record).and_then([&] { return writer.flush(); });
  if (!done) return tl::unexpected(done.error());
  return writer;
}

record_writer::record_writer(record_writer&& other) noexcept
  : file_(std::move(other.file_)), pending_(std::exchange(other.pending_, {})),
    written_bytes_(other.written_bytes_), failure_(std::move(other.failure_)) {}

record_writer& record_writer::operator=(record_writer&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(pending_, other.pending_);
  std::swap(written_bytes_, other.written_bytes_);
  std::swap(failure_, other.failure_);
  return *this;
}

record_writer::~record_writer() {
  [[maybe_unused]] const auto ignored = flush();
}

expected<void> record_writer::append(std::string_view record) {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  pending_ += record;
  if (pending_.size() < pending_bytes_max) return {};
  return flush();
}

expected<void> record_writer::flush() {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  auto done = file_.write_at(written_bytes_, pending_);
  if (!done) {
    failure_ = done.error();
    file_.truncate(written_bytes_);
  } else {
    written_bytes_ += pending_.size();
  }
  pending_.clear();
  return done;
}

} // namespace troupe
