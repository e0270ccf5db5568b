// SPDX-License-Identifier: Apache-2.0
// How long nodes of tests look for messages before they sleep.
#pragma once

#include <chrono>
#include <cstdlib>
#include <optional>

namespace troupe::test {

/// The value of TROUPE_SPIN_US, by which tests are run with nodes that look and nodes that do not;
/// without it nodes choose.
inline std::optional<std::chrono::microseconds> forced_spin() {
  const char* text = std::getenv("TROUPE_SPIN_US");
  if (text == nullptr) return std::nullopt;
  return std::chrono::microseconds{std::atoi(text)};
}

} // namespace troupe::test
