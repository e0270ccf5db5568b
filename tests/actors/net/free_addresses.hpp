// SPDX-License-Identifier: Apache-2.0
// Where processes that a test plays can listen.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// Addresses of this machine that were free a moment ago.
inline std::vector<std::string> free_addresses(uint32_t count) {
  using boost::asio::ip::tcp;
  boost::asio::io_context context;
  std::vector<std::unique_ptr<tcp::acceptor>> taken;
  std::vector<std::string> addresses;
  for (uint32_t i = 0; i < count; ++i) {
    tcp::endpoint anywhere{boost::asio::ip::address_v4::loopback(), 0};
    taken.push_back(std::make_unique<tcp::acceptor>(context, anywhere));
    addresses.push_back(fmt::format("127.0.0.1:{}", taken.back()->local_endpoint().port()));
  }
  return addresses;
}

} // namespace troupe::test
