// SPDX-License-Identifier: Apache-2.0
// Reads a file by system calls, which give reasons for failures.
#include "tools/system/file_content.hpp"

#include "actors/recording/input_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace troupe {

namespace {

struct descriptor {
  explicit descriptor(int opened) : number(opened) {}

  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  ~descriptor() {
    if (number >= 0) ::close(number);
  }

  int number;
};

} // namespace

expected<std::string> file_content(const std::string& path, uint64_t bytes_max) {
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};

  struct stat facts {};

  if (file.number < 0 || ::fstat(file.number, &facts) != 0) return cannot_read(path);
  if (S_ISDIR(facts.st_mode))
    return fail(errc::invalid_argument, fmt::format("{} is a folder, not a file", path));
  std::string content;
  char block[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(file.number, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(path);
    if (count == 0) return content;
    content.append(block, static_cast<size_t>(count));
    if (content.size() > bytes_max)
      return fail(errc::limit_exceeded, fmt::format("{} is longer than {} bytes", path, bytes_max));
  }
}

std::string unreadable_reason(const error& reason, const std::filesystem::path& path) {
  if (reason.code != errc::not_found || !path.is_relative()) return reason.message;
  std::error_code unknown;
  return fmt::format("{}; it is looked for in {}", reason.message,
                     std::filesystem::current_path(unknown).string());
}

} // namespace troupe
