// SPDX-License-Identifier: Apache-2.0
// Addresses as people write them.
#include "actors/net/host_port.hpp"

#include <charconv>
#include <fmt/format.h>

namespace troupe {

expected<host_port> parse_host_port(std::string_view text) {
  auto refuse = [&](std::string_view what) {
    return fail(errc::invalid_argument,
                fmt::format("'{}' {}; write host:port, as in 10.0.0.3:2222", text, what));
  };
  auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return refuse("has no port");
  auto host = text.substr(0, colon);
  auto digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return refuse("has an IPv6 address without brackets");
  if (host.empty()) return refuse("has no host");
  uint16_t port = 0;
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failed != std::errc{} || end != digits.data() + digits.size())
    return refuse("has a port that is no number from 0 to 65535");
  return host_port{std::string{host}, port};
}

std::string to_string(const host_port& where) {
  auto is_v6 = where.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", where.host, where.port)
               : fmt::format("{}:{}", where.host, where.port);
}

} // namespace troupe
