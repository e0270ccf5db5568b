// SPDX-License-Identifier: Apache-2.0
// Opens descriptors 0, 1 and 2, writes to them, and remembers a failure.
#include "tools/system/standard_streams.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace troupe {

namespace {

// A stream reports a failed write once, and without the reason.
std::atomic<int> output_error{0};

} // namespace

void open_standard_streams() {
  // `open` takes the lowest descriptor that is free, and those below are not.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1) static_cast<void>(::open("/dev/null", O_RDWR));
}

void write_if_possible(std::FILE* stream, std::string_view text) {
  auto is_buffered = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  auto is_written = std::fflush(stream) == 0 && is_buffered;
  if (!is_written && stream == stdout) output_error = errno;
}

int finish_standard_output() {
  if (std::fflush(stdout) != 0) output_error = errno;
  return output_error;
}

} // namespace troupe
