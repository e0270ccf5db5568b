// SPDX-License-Identifier: Apache-2.0
// Descriptors 0, 1 and 2.
#include "tools/system/standard_streams.hpp"

#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace troupe {

void open_standard_streams() {
  // `open` takes the lowest descriptor that is free, and those below are not.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) == -1) static_cast<void>(::open("/dev/null", O_RDWR));
}

} // namespace troupe
