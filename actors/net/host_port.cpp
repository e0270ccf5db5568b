// SPDX-License-Identifier: Apache-2.0
// Taking addresses apart, and saying what they lack.
#include "actors/net/host_port.hpp"

#include "messages/text.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

tl::unexpected<error> bad_address(std::string line) {
  return fail(errc::invalid_argument, std::move(line));
}

// The first character that no host has, in words; empty: there is none.
std::string wrong_character(std::string_view host) {
  for (char letter : host) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == ' ') return "a blank";
    if (code < 0x20 || code == 0x7f) return "a control character";
    if (std::string_view{",;/[]\"'"}.find(letter) != std::string_view::npos)
      return fmt::format("the character {}", letter);
  }
  return {};
}

} // namespace

expected<host_port> parse_host_port(std::string_view text, uint16_t least_port) {
  if (auto scheme = text.find("://"); scheme != std::string_view::npos)
    return bad_address(fmt::format("'{}' begins with '{}', but an address is only host:port", text,
                                   text.substr(0, scheme + 3)));
  auto colon = text.rfind(':');
  auto is_bracketed = text.starts_with('[') && text.find(']') != std::string_view::npos;
  if (colon == std::string_view::npos || (is_bracketed && colon < text.find(']')))
    return bad_address(fmt::format("'{}' has no port", text));
  auto host = text.substr(0, colon);
  if (is_bracketed && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return bad_address(fmt::format("'{}' has several colons; an IPv6 address stands in brackets: "
                                   "[::1]:2222",
                                   text));
  if (host.empty()) return bad_address(fmt::format("'{}' has no host", text));
  if (auto wrong = wrong_character(host); !wrong.empty())
    return bad_address(fmt::format("'{}' has {} in its host", text, wrong));
  auto port = parse_count(text.substr(colon + 1), 65535);
  if (!port || *port < least_port)
    return bad_address(fmt::format("'{}' has no port from {} to 65535", text, least_port));
  return host_port{std::string{host}, static_cast<uint16_t>(*port)};
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string to_string(const host_port& address) {
  if (address.host.find(':') != std::string::npos)
    return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

expected<uint64_t> parse_count(std::string_view text, uint64_t max) {
  auto number = number_of<uint64_t>(text);
  if (!number || *number > max)
    return bad_address(fmt::format("'{}' is no whole number from 0 to {}", text, max));
  return *number;
}

} // namespace troupe
