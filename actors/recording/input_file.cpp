// SPDX-License-Identifier: Apache-2.0
// The system calls that read a file.
#include "actors/recording/input_file.hpp"

#include "messages/errors/system_reason.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {

/// An open file, or bytes in memory if there is no descriptor.
struct input_file::state {
  explicit state(std::string file_name) : name(std::move(file_name)) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() {
    if (descriptor >= 0) ::close(descriptor);
  }

  std::string name;
  uint64_t bytes = 0;
  int descriptor = -1;
  const std::byte* memory = nullptr;
};

expected<input_file> input_file::open(const std::filesystem::path& path) {
  auto opened = std::make_shared<state>(path.native());
  // Without O_NONBLOCK a pipe would keep us waiting for its writer before we could refuse it.
  opened->descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

  struct stat facts {};

  if (opened->descriptor < 0 || ::fstat(opened->descriptor, &facts) != 0)
    return cannot_read(opened->name);
  if (!S_ISREG(facts.st_mode)) {
    return fail(errc::invalid_argument,
                fmt::format("{} is {}, not a file", opened->name,
                            S_ISDIR(facts.st_mode) ? "a folder" : "a device or a pipe"));
  }
  opened->bytes = static_cast<uint64_t>(facts.st_size);
  return input_file{std::move(opened)};
}

input_file input_file::in_memory(std::string name, std::span<const std::byte> bytes) {
  auto held = std::make_shared<state>(std::move(name));
  held->memory = bytes.data();
  held->bytes = bytes.size();
  return input_file{std::move(held)};
}

const std::string& input_file::name() const {
  return state_->name;
}

uint64_t input_file::bytes() const {
  return state_->bytes;
}

expected<void> input_file::read_at(uint64_t offset, std::span<std::byte> target) const {
  if (offset > bytes() || target.size() > bytes() - offset)
    return malformed(bytes(), "the file ends here, too early");
  if (state_->descriptor < 0) {
    std::copy_n(state_->memory + offset, target.size(), target.data());
    return {};
  }
  while (!target.empty()) {
    const ssize_t count
      = ::pread(state_->descriptor, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(name());
    if (count == 0) return malformed(offset, "the file has become shorter while it was read");
    offset += static_cast<uint64_t>(count);
    target = target.subspan(static_cast<size_t>(count));
  }
  return {};
}

expected<std::string> input_file::text(uint64_t offset) const {
  std::string all(bytes() - offset, '\0');
  return read_at(offset, std::as_writable_bytes(std::span{all})).map([&] {
    return std::move(all);
  });
}

tl::unexpected<error> input_file::malformed(uint64_t offset, std::string_view problem) const {
  return fail(errc::malformed, fmt::format("{}: byte {}: {}", name(), offset, problem));
}

tl::unexpected<error> cannot_read(const std::string& name) {
  const int code = errno;
  const auto kind = code == ENOENT || code == ENOTDIR ? errc::not_found : errc::resource;
  return fail(kind, fmt::format("cannot read {}: {}", name, system_reason(code)));
}

std::string excerpt(std::string_view text, size_t bytes_max) {
  std::string line{'"'};
  for (char letter : text.substr(0, bytes_max)) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f)
      line += fmt::format("\\x{:02x}", code);
    else
      line += letter;
  }
  return line + (text.size() > bytes_max ? "...\"" : "\"");
}

} // namespace troupe
