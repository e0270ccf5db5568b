// SPDX-License-Identifier: Apache-2.0
// Adds mends to the reasons of the system.
#include "messages/errors/system_reason.hpp"

#include <cerrno>
#include <cstring>

namespace troupe {

std::string system_reason(int number) {
  std::string reason = std::strerror(number);
  return number == EMFILE ? reason + "; ulimit -n sets the limit" : reason;
}

std::string start_reason(int number) {
  auto reason = system_reason(number);
  if (number != EAGAIN) return reason;
  return reason + "; ulimit -u, or the container's limit on processes, sets how many";
}

} // namespace troupe
