// SPDX-License-Identifier: Apache-2.0
// Goal: addresses are taken apart, and each slip has a sentence of its own. Method: a table.
#include "actors/net/host_port.hpp"
#include "tests/doctest.hpp"

#include <fmt/format.h>

namespace host_port_test {

TEST_SUITE("actors/net/host_port") {
  using namespace troupe;

  std::string reason(std::string_view text) {
    auto address = parse_host_port(text);
    return address ? "accepted" : address.error().message;
  }

  TEST_CASE("takes names, IPv4 and IPv6 in brackets, and spells them as they came") {
    CHECK(parse_host_port("node7:2222") == host_port{"node7", 2222});
    CHECK(parse_host_port("10.0.0.7:1") == host_port{"10.0.0.7", 1});
    CHECK(parse_host_port("[fe80::7]:65535") == host_port{"fe80::7", 65535});
    for (const auto* text : {"node7:2222", "[fe80::7]:65535"})
      CHECK(to_string(parse_host_port(text).value()) == text);
  }

  TEST_CASE("says what an address lacks") {
    CHECK(reason("node7") == "'node7' has no port");
    CHECK(reason("") == "'' has no port");
    CHECK(reason("[::1]") == "'[::1]' has no port");
    CHECK(reason("node7:") == "'node7:' has no port from 1 to 65535");
    CHECK(reason("node7:0") == "'node7:0' has no port from 1 to 65535");
    CHECK(reason("node7:65536") == "'node7:65536' has no port from 1 to 65535");
    CHECK(reason("node7:22x") == "'node7:22x' has no port from 1 to 65535");
    CHECK(reason(":2222") == "':2222' has no host");
    CHECK(reason("grpc://a:1")
          == "'grpc://a:1' begins with 'grpc://', but an address is only "
             "host:port");
    CHECK(reason("::1:2222")
          == "'::1:2222' has several colons; an IPv6 address stands in "
             "brackets: [::1]:2222");
  }

  TEST_CASE("names the first character that no host has") {
    CHECK(reason("a b:1") == "'a b:1' has a blank in its host");
    CHECK(reason(" a:1") == "' a:1' has a blank in its host");
    for (const auto* control : {"\t", "\n", "\x1b", "\x7f"})
      CHECK(reason(fmt::format("a{}b:1", control))
            == fmt::format("'a{}b:1' has a control character in its host", control));
    CHECK(reason("a/b,c:1") == "'a/b,c:1' has the character / in its host");
    CHECK(reason("\xc3\xa4:1") == "accepted");
  }

  TEST_CASE("takes whole numbers up to the greatest one, and nothing behind them") {
    CHECK(parse_count("0", 7) == 0);
    CHECK(parse_count("7", 7) == 7);
    for (const auto* text : {"", "8", "-1", "+1", "1.5", "1 ", "99999999999999999999"})
      CHECK(parse_count(text, 7).error().message
            == fmt::format("'{}' is no whole number from 0 to 7", text));
  }
}

} // namespace host_port_test
