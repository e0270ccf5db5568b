// SPDX-License-Identifier: Apache-2.0
// Where a task listens, as people write it: "host:port".
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// A host and a port.
struct host_port {
  std::string host; ///< A name or an address; IPv6 without its brackets.
  uint16_t port = 0;

  bool operator==(const host_port&) const = default;
};

/// Takes "node7:2222", "10.0.0.7:2222" or "[fe80::7]:2222" apart.
/// @param least_port 0: the system may choose one.
/// Errors: invalid_argument, a sentence that begins with the text in quotes: no port, one below
/// `least_port` or above 65535, no host, one with a blank, a control character or one of ,;/[]"',
/// a scheme such as "grpc://", IPv6 without brackets.
[[nodiscard]] expected<host_port> parse_host_port(std::string_view text, uint16_t least_port = 1);

/// Whether a host is this machine wherever it is read: "localhost", "127.0.0.1", "::1".
[[nodiscard]] bool is_loopback(std::string_view host);

/// "host:port"; an IPv6 address gets its brackets.
[[nodiscard]] std::string to_string(const host_port& address);

/// The number that a text is, all of it.
/// Errors: invalid_argument, naming the text and the greatest number.
[[nodiscard]] expected<uint64_t> parse_count(std::string_view text, uint64_t max);

} // namespace troupe
