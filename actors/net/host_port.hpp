// SPDX-License-Identifier: Apache-2.0
// "10.0.0.3:2222" taken apart.
#pragma once

#include "messages/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where a node listens.
struct host_port {
  std::string host; ///< A name, or an address; of IPv6 without its brackets.
  uint16_t port = 0;

  bool operator==(const host_port&) const = default;
};

/// Takes "host:port" or "[::1]:port" apart.
/// Errors: invalid_argument, naming the text and what it lacks.
[[nodiscard]] expected<host_port> parse_host_port(std::string_view text);

/// The way back.
[[nodiscard]] std::string to_string(const host_port& where);

} // namespace troupe
