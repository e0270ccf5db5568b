// SPDX-License-Identifier: Apache-2.0
// The reason for which a call was refused, as one line.
#pragma once

#include "messages/errors/failure.hpp"

#include <string>

namespace troupe::test {

/// "invalid_argument: the reason", or "accepted".
template <class Call>
std::string refusal(const Call& call) {
  try {
    (void)call();
  } catch (const failure& failed) {
    return std::string{to_string(failed.reason().code)} + ": " + failed.what();
  }
  return "accepted";
}

} // namespace troupe::test
