// SPDX-License-Identifier: Apache-2.0
// Where processes that a test plays can listen.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <fmt/format.h>
#include <list>
#include <random>
#include <string>
#include <utility> // Boost 1.74 misses it in C++20
#include <vector>

namespace troupe::test {

/// Addresses of this machine that were free a moment ago. They are drawn from below the ports that
/// Linux gives to connections and to sockets that ask for any, so none is given one by chance
/// before the test has taken it.
inline std::vector<std::string> free_addresses(uint32_t count) {
  using boost::asio::ip::tcp;
  boost::asio::io_context context;
  std::random_device source;
  std::uniform_int_distribution<int> draw{20'000, 32'767};
  std::list<tcp::acceptor> taken;
  std::vector<std::string> addresses;
  while (addresses.size() < count) {
    auto port = static_cast<uint16_t>(draw(source));
    auto& one = taken.emplace_back(context, tcp::v4());
    boost::system::error_code refused;
    one.bind({boost::asio::ip::address_v4::loopback(), port}, refused);
    if (!refused) addresses.push_back(fmt::format("127.0.0.1:{}", port));
  }
  return addresses;
}

} // namespace troupe::test
