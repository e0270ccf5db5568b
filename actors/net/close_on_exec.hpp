// SPDX-License-Identifier: Apache-2.0
// Descriptors that stay in this process.
#pragma once

#include <fcntl.h>

namespace troupe {

/// Closes a descriptor in every program that this process starts. Boost.Asio's sockets stay open
/// there otherwise: when this process is killed, its port is still taken, and no peer sees its end.
inline void close_on_exec(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

} // namespace troupe
