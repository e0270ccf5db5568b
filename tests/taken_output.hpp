// SPDX-License-Identifier: Apache-2.0
// The output of a test's code, as a text.
#pragma once

#include "tests/scratch_folder.hpp"

#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace troupe::test {

/// Takes what is written to a standard stream, until its end.
class taken_output {
public:
  explicit taken_output(int stream = STDERR_FILENO) : stream_(stream), before_(::dup(stream)) {
    int file = ::open((folder_ / "said").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ::dup2(file, stream_);
    ::close(file);
  }

  ~taken_output() {
    ::dup2(before_, stream_);
    ::close(before_);
  }

  taken_output(const taken_output&) = delete;
  taken_output& operator=(const taken_output&) = delete;

  /// The text that has been written so far.
  [[nodiscard]] std::string said() const { return content(folder_ / "said"); }

private:
  scratch_folder folder_;
  int stream_;
  int before_;
};

} // namespace troupe::test
