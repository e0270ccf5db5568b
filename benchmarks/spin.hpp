// SPDX-License-Identifier: Apache-2.0
// How long a thread looks for messages before it sleeps, by the environment.
#pragma once

#include <chrono>
#include <cstdlib>
#include <optional>

namespace troupe {

/// TROUPE_SPIN_US, in microseconds, as for a server.
inline std::optional<std::chrono::microseconds> spin_of_environment() {
  const auto* spin = std::getenv("TROUPE_SPIN_US");
  if (spin == nullptr) return std::nullopt;
  return std::chrono::microseconds{std::atoi(spin)};
}

} // namespace troupe
